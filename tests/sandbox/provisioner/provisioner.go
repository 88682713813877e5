// Package provisioner gives the sandbox volumes that are as real as one machine
// allows: each is an XFS of exactly the wanted size, so it fills up, and it grows
// while it is used.
package provisioner

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"github.com/deckhouse/system-s3/tests/sandbox/disk"
	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

// Name is the provisioner's name in the StorageClasses.
const Name = "sandbox.system-s3.deckhouse.io/xfs"

const (
	parameterTied = "tied"
	yes           = "true"
	networkPlace  = "network"
)

var (
	errNoNode = errors.New("no node to put the volume on")
	errBlock  = errors.New("only file systems, no block volumes")
	// Anybody may write a PersistentVolume that claims to be of this provisioner.
	errElsewhere = errors.New("it is not below the folder of the volumes")
)

// Provisioner makes and deletes volumes.
type Provisioner struct {
	dir    statedir.Dir
	client kubernetes.Interface
}

// Provision makes the volume of a claim. A class whose parameter "tied" is "true"
// has its volumes on one node: the one that the scheduler chose, or any node when
// the class binds at once. Other volumes are reached from every node.
func (p Provisioner) Provision(
	ctx context.Context, o controller.ProvisionOptions,
) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	if mode := o.PVC.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		return nil, controller.ProvisioningFinished, errBlock
	}

	node, err := p.place(ctx, o)
	if err != nil {
		return nil, controller.ProvisioningFinished, err
	}

	folder := networkPlace
	if node != "" {
		folder = node
	}

	size := o.PVC.Spec.Resources.Requests[corev1.ResourceStorage]
	volume := disk.Volume{Folder: p.dir.Volumes(folder, o.PVName)}

	if err := volume.Create(ctx, size.Value()); err != nil {
		return nil, controller.ProvisioningInBackground, fmt.Errorf("make volume %s: %w", o.PVName, err)
	}

	return persistentVolume(o, volume, node), controller.ProvisioningFinished, nil
}

// place is the node that the volume is tied to; empty when it is not tied.
func (p Provisioner) place(ctx context.Context, o controller.ProvisionOptions) (string, error) {
	if o.StorageClass.Parameters[parameterTied] != yes {
		return "", nil
	}

	if o.SelectedNodeName != "" {
		return o.SelectedNodeName, nil
	}

	nodes, err := p.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list the nodes: %w", err)
	}

	names := make([]string, 0, len(nodes.Items))
	for i := range nodes.Items {
		names = append(names, nodes.Items[i].Name)
	}

	return anyOf(names, o.PVName)
}

// anyOf chooses a name by the key: another key may get another one, the same key
// gets the same, so that a repeated attempt finds the volume of the first.
func anyOf(names []string, key string) (string, error) {
	if len(names) == 0 {
		return "", errNoNode
	}

	slices.Sort(names)

	hash := fnv.New64a()
	hash.Write([]byte(key)) //nolint:gosec // a hash does not fail

	return names[hash.Sum64()%uint64(len(names))], nil
}

func persistentVolume(o controller.ProvisionOptions, v disk.Volume, node string) *corev1.PersistentVolume {
	size := o.PVC.Spec.Resources.Requests[corev1.ResourceStorage]
	if size.Value() < disk.MinSize {
		size = *resource.NewQuantity(disk.MinSize, resource.BinarySI)
	}

	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: size},
			AccessModes:                   o.PVC.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			StorageClassName:              o.StorageClass.Name,
			MountOptions:                  nil,
		},
	}

	if node == "" {
		// Without any affinity, as the volumes of a network storage are. The kubelet
		// leaves the owner of a host path alone: the volume is open to all users.
		folder := corev1.HostPathDirectory
		pv.Spec.HostPath = &corev1.HostPathVolumeSource{Path: v.Path(), Type: &folder}

		return pv
	}

	pv.Spec.Local = &corev1.LocalVolumeSource{Path: v.Path()}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
			}},
		}},
	}}

	return pv
}

// Delete deletes the volume's data. A volume that is gone already is no error.
func (p Provisioner) Delete(ctx context.Context, pv *corev1.PersistentVolume) error {
	if !strings.HasPrefix(volumeOf(pv).Folder, p.dir.Volumes("")+"/") {
		return fmt.Errorf("delete volume %s: %w", pv.Name, errElsewhere)
	}

	if err := volumeOf(pv).Remove(ctx); err != nil {
		return fmt.Errorf("delete volume %s: %w", pv.Name, err)
	}

	return nil
}

func volumeOf(pv *corev1.PersistentVolume) disk.Volume {
	path := ""

	switch {
	case pv.Spec.Local != nil:
		path = pv.Spec.Local.Path
	case pv.Spec.HostPath != nil:
		path = pv.Spec.HostPath.Path
	}

	return disk.Volume{Folder: filepath.Dir(path)}
}

// remount mounts all volumes there are: after a restart of the machine none is.
func remount(ctx context.Context, dir statedir.Dir) error {
	files, err := filepath.Glob(dir.Volumes("*", "*", "disk.img"))
	if err != nil {
		return fmt.Errorf("list the volumes: %w", err)
	}

	for _, file := range files {
		if err := (disk.Volume{Folder: filepath.Dir(file)}).Mount(ctx); err != nil {
			return fmt.Errorf("mount again: %w", err)
		}
	}

	return nil
}
