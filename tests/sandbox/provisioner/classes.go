package provisioner

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// DefaultClass is the StorageClass that claims without a class get.
const DefaultClass = "local"

const defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

// Classes are the StorageClasses of the sandbox, one for each kind of storage that
// system-s3 treats differently.
func Classes() []storagev1.StorageClass {
	return []storagev1.StorageClass{
		class(DefaultClass, traits{tied: true, grows: true, waits: true}),
		class("network", traits{grows: true, waits: true}),
		class("fixed", traits{tied: true, waits: true}),
		class("immediate", traits{tied: true, grows: true}),
	}
}

// traits of a class: its volumes are tied to a node, can grow, and wait for the
// first Pod before a place is chosen.
type traits struct{ tied, grows, waits bool }

func class(name string, t traits) storagev1.StorageClass {
	reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
	if t.waits {
		binding = storagev1.VolumeBindingWaitForFirstConsumer
	}

	return storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: name, Annotations: map[string]string{defaultClassAnnotation: fmt.Sprint(name == DefaultClass)}},
		Provisioner:          Name,
		Parameters:           map[string]string{parameterTied: fmt.Sprint(t.tied)},
		ReclaimPolicy:        &reclaim,
		AllowVolumeExpansion: &t.grows,
		VolumeBindingMode:    &binding,
	}
}

// EnsureClasses creates the StorageClasses that are missing. Those that are there
// stay as they are: tests move the default mark about.
func EnsureClasses(ctx context.Context, client kubernetes.Interface) error {
	classes := Classes()
	for i := range classes {
		_, err := client.StorageV1().StorageClasses().Create(ctx, &classes[i], metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create StorageClass %s: %w", classes[i].Name, err)
		}
	}

	return nil
}
