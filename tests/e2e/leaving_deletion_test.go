package e2e

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

// protect puts Deckhouse's admission policies in place, until the test ends if they were not there.
func protect(t *testing.T) {
	t.Helper()
	file, err := os.Open(filepath.Join(site.Builds.Source(), "platform", "manifests", "protection.yaml"))
	require.NoError(t, err)
	defer file.Close()
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); err != nil {
			require.ErrorIs(t, err, io.EOF)
			return
		}
		if len(object.Object) == 0 {
			continue
		}
		err := site.Deckhouse.Create(t.Context(), object)
		if err == nil {
			t.Cleanup(func() { _ = site.Deckhouse.Delete(context.Background(), object) })
		}
		require.NoError(t, client.IgnoreAlreadyExists(err))
	}
}

// namespaceAdmin may delete namespaces and nothing else: an administrator without the rights of Deckhouse.
func namespaceAdmin(t *testing.T) client.Client {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-namespaces"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "delete"}}},
	}
	require.NoError(t, client.IgnoreAlreadyExists(site.Admin.Create(t.Context(), role)))
	t.Cleanup(func() { _ = site.Admin.Delete(context.Background(), role) })
	return person(t, "plain-admin", "", role.Name)
}

// isDeleted deletes the namespace with plain rights: refused while the module is enabled, done while it is not.
func (s *leaving) isDeleted(t *testing.T) {
	ctx := t.Context()
	protect(t)
	admin := namespaceAdmin(t)
	store := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.Namespace}}
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the protection to work", Limit: shortLimit, Look: func(ctx context.Context) (bool, string, error) {
		err := admin.Delete(ctx, store, client.DryRunAll)
		return apierrors.IsForbidden(err), "the enabled store can be deleted", nil
	}}))
	require.NoError(t, site.Disable(ctx))
	s.hasLeft(t)
	volumes := volumesOf(t)
	require.NotEmpty(t, volumes)
	require.NoError(t, admin.Delete(ctx, store))
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the store's namespace to be gone", Limit: moduleLimit, Look: absent(
		client.ObjectKeyFromObject(store), &corev1.Namespace{})}))
	for _, name := range volumes {
		require.NoError(t, site.Await(ctx, stage.Wish{What: "volume " + name + " to be deleted, as its class says", Limit: moduleLimit, Look: absent(
			client.ObjectKey{Name: name}, &corev1.PersistentVolume{})}))
	}
	_, _, err := site.ReadBucket(ctx, mainKey())
	require.NoError(t, err, "SystemBuckets elsewhere stay")
}

// volumesOf are the names of the store's volumes.
func volumesOf(t *testing.T) []string {
	t.Helper()
	claims := &corev1.PersistentVolumeClaimList{}
	require.NoError(t, site.Admin.List(t.Context(), claims, client.InNamespace(names.Namespace)))
	var found []string
	for i := range claims.Items {
		found = append(found, claims.Items[i].Spec.VolumeName)
	}
	return found
}

// startsEmpty enables the module whose store was deleted.
func (s *leaving) startsEmpty(t *testing.T) {
	ctx := t.Context()
	before, _, err := site.ReadBucket(ctx, mainKey())
	require.NoError(t, err)
	require.NoError(t, site.Configure(ctx, true, nil))
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the SystemBucket to say that its data is lost", Limit: storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		bucket, ready, err := site.ReadBucket(ctx, mainKey())
		if err != nil {
			return false, "", err
		}
		lost := meta.FindStatusCondition(bucket.Status.Conditions, v1alpha1.ConditionDataLost)
		if lost == nil || ready.Status != metav1.ConditionTrue {
			return false, ready.Message, nil
		}
		return lost.Status == metav1.ConditionTrue && bucket.Status.BucketID != before.Status.BucketID, lost.Message, nil
	}}))
	require.NoError(t, site.AwaitCondition(ctx, storeLimit, storageReady, plan.ReasonReady))
	require.NotEqual(t, s.kept["Secret "+names.GarageObject(plane)], keptFacts(t)["Secret "+names.GarageObject(plane)], "another store")
	bucket := bucketName(t, mainBucket)
	require.Equal(t, before.Status.BucketName, bucket, "what consumers know stays")
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the bucket to answer that it is empty", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		d := s.door(t)
		_, err := get(ctx, d.s3(d.of(leavingAccount, mainBucket, "")), bucket, leavingObject)
		return code(err) == "NoSuchKey", code(err), nil
	}}))
	s.writes(t)
	s.readsBack(t)
}
