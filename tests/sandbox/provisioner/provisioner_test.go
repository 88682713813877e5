package provisioner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"github.com/deckhouse/system-s3/tests/sandbox/disk"
	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

func TestClasses(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason                   string
		tied, grows, waits, star bool
	}{
		"local":     {reason: "the default, as a local storage is", tied: true, grows: true, waits: true, star: true},
		"network":   {reason: "reached from every node", grows: true, waits: true},
		"fixed":     {reason: "cannot grow", tied: true, waits: true},
		"immediate": {reason: "placed before any Pod", tied: true, grows: true},
	}
	classes := Classes()
	require.Len(t, classes, len(cases))

	for i := range classes {
		class := &classes[i]

		t.Run(class.Name, func(t *testing.T) {
			t.Parallel()

			c, known := cases[class.Name]
			require.True(t, known)

			assert.Equal(t, Name, class.Provisioner)
			assert.Equal(t, c.tied, class.Parameters[parameterTied] == yes, c.reason)
			assert.Equal(t, c.grows, *class.AllowVolumeExpansion, c.reason)
			assert.Equal(t, c.waits, *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer, c.reason)
			assert.Equal(t, c.star, class.Annotations[defaultClassAnnotation] == "true", c.reason)
			assert.Equal(t, corev1.PersistentVolumeReclaimDelete, *class.ReclaimPolicy)
		})
	}
}

func TestEnsureClassesLeavesWhatIsThere(t *testing.T) {
	t.Parallel()

	moved := class(DefaultClass, traits{tied: true, grows: true, waits: true})
	moved.Annotations[defaultClassAnnotation] = "false"

	client := fake.NewClientset(&moved)
	require.NoError(t, EnsureClasses(t.Context(), client))

	list, err := client.StorageV1().StorageClasses().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, list.Items, len(Classes()))

	got, err := client.StorageV1().StorageClasses().Get(t.Context(), DefaultClass, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "false", got.Annotations[defaultClassAnnotation], "a test took the mark off")
}

func options(name, className, node string) controller.ProvisionOptions {
	var class *storagev1.StorageClass

	classes := Classes()
	for i := range classes {
		if classes[i].Name == className {
			class = &classes[i]
		}
	}

	claim := &corev1.PersistentVolumeClaim{}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}

	return controller.ProvisionOptions{StorageClass: class, PVName: name, PVC: claim, SelectedNodeName: node}
}

func nodeObject(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestPlace(t *testing.T) {
	t.Parallel()

	p := Provisioner{client: fake.NewClientset(nodeObject("node-1"), nodeObject("node-2"), nodeObject("node-3"))}

	cases := map[string]struct {
		reason  string
		options controller.ProvisionOptions
		want    string
	}{
		"chosen":   {reason: "where the scheduler puts the Pod", options: options("pv", "local", "node-2"), want: "node-2"},
		"not tied": {reason: "wherever the Pod is", options: options("pv", "network", "node-2")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := p.place(t.Context(), c.options)
			require.NoError(t, err)
			assert.Equal(t, c.want, got, c.reason)
		})
	}

	places := map[string]bool{}

	for _, name := range []string{"pv-a", "pv-b", "pv-c", "pv-d", "pv-e", "pv-f", "pv-g", "pv-h"} {
		first, err := p.place(t.Context(), options(name, "immediate", ""))
		require.NoError(t, err)

		second, err := p.place(t.Context(), options(name, "immediate", ""))
		require.NoError(t, err)
		assert.Equal(t, first, second, "a repeated attempt finds the volume of the first")

		places[first] = true
	}

	assert.Greater(t, len(places), 1, "volumes are spread")

	_, err := Provisioner{client: fake.NewClientset()}.place(t.Context(), options("pv", "immediate", ""))
	assert.ErrorIs(t, err, errNoNode)
}

func TestBlockVolumesAreRefused(t *testing.T) {
	t.Parallel()

	o, block := options("pv", "local", "node-1"), corev1.PersistentVolumeBlock
	o.PVC.Spec.VolumeMode = &block

	_, state, err := Provisioner{}.Provision(t.Context(), o)
	require.ErrorIs(t, err, errBlock)
	assert.Equal(t, controller.ProvisioningFinished, state, "trying again would not help")
}

func TestPersistentVolume(t *testing.T) {
	t.Parallel()

	volume := disk.Volume{Folder: "/box/volumes/node-1/pv"}

	tied := persistentVolume(options("pv", "local", "node-1"), volume, "node-1")
	assert.Equal(t, volume.Path(), tied.Spec.Local.Path)
	assert.Equal(t, []string{"node-1"}, tied.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values)
	assert.Equal(t, volume, volumeOf(tied))
	assert.Equal(t, "1Gi", tied.Spec.Capacity.Storage().String())

	free := persistentVolume(options("pv", "network", ""), volume, "")
	assert.Nil(t, free.Spec.NodeAffinity, "any node reaches it")
	assert.Equal(t, volume, volumeOf(free))

	small := options("pv", "local", "node-1")
	small.PVC.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Mi")
	assert.Equal(t, int64(disk.MinSize), persistentVolume(small, volume, "node-1").Spec.Capacity.Storage().Value(), "what is made is told")
}

func TestOnlyVolumesOfTheSandboxAreDeleted(t *testing.T) {
	t.Parallel()

	p := Provisioner{dir: statedir.Dir(t.TempDir())}
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "fs"), 0o700))

	foreign := persistentVolume(options("pv", "network", ""), disk.Volume{Folder: folder}, "")
	require.ErrorIs(t, p.Delete(t.Context(), foreign), errElsewhere)
	require.ErrorIs(t, p.Delete(t.Context(), &corev1.PersistentVolume{}), errElsewhere)
	assert.DirExists(t, folder)

	gone := persistentVolume(options("pv", "network", ""), disk.Volume{Folder: p.dir.Volumes("network", "pv")}, "")
	assert.NoError(t, p.Delete(t.Context(), gone), "what is gone is no error")
}

func TestWantsMore(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason     string
		want, have string
		phase      corev1.PersistentVolumeClaimPhase
		more       bool
	}{
		"grown":   {reason: "asks for more than it has", want: "2Gi", have: "1Gi", phase: corev1.ClaimBound, more: true},
		"equal":   {reason: "has what it asks for", want: "1Gi", have: "1024Mi", phase: corev1.ClaimBound},
		"less":    {reason: "volumes do not shrink", want: "1Mi", have: "300Mi", phase: corev1.ClaimBound},
		"pending": {reason: "there is no volume yet", want: "1Gi", have: "0", phase: corev1.ClaimPending},
		"lost":    {reason: "there is no volume any more", want: "2Gi", have: "1Gi", phase: corev1.ClaimLost},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			claim := &corev1.PersistentVolumeClaim{}
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(c.want)}
			claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(c.have)}
			claim.Status.Phase = c.phase
			assert.Equal(t, c.more, wantsMore(claim), c.reason)
		})
	}
}

func TestPublishTellsTheVolumeAndTheClaim(t *testing.T) {
	t.Parallel()

	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"}}
	claim.Spec.VolumeName = "pv"
	claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimResizing}}

	client := fake.NewClientset(claim, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}})
	require.NoError(t, newGrowth(client).publish(t.Context(), claim, resource.MustParse("2Gi")))

	pv, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "pv", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "2Gi", pv.Spec.Capacity.Storage().String())

	got, err := client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "data", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "2Gi", got.Status.Capacity.Storage().String())
	assert.Empty(t, got.Status.Conditions, "the resize is over")
}
