package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
)

// keptFacts are the facts that no leaving and no return may change: who the objects are, and what is in the secrets, as
// a digest, since it must not be shown.
func keptFacts(t *testing.T) map[string]string {
	t.Helper()
	ctx := t.Context()
	facts := map[string]string{}
	for _, name := range []string{names.GarageObject(plane), names.KeyRingSecret, names.TLSSecret, names.CASecret} {
		secret := &corev1.Secret{}
		require.NoError(t, site.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: name}, secret))
		facts["Secret "+name] = string(secret.UID) + " " + digest(secret.Data)
	}
	for kind, version := range map[string]schema.GroupVersion{
		"Namespace": {Version: "v1"}, "PersistentVolumeClaim": {Version: "v1"}, "StatefulSet": {Group: "apps", Version: "v1"},
	} {
		found, err := metadata(ctx, version.WithKind(kind))
		require.NoError(t, err)
		for _, object := range found {
			facts[kind+" "+object.Name] = string(object.UID)
		}
	}
	bucket, _, err := site.ReadBucket(ctx, mainKey())
	require.NoError(t, err)
	facts["SystemBucket"] = fmt.Sprintf("%s %s %s", bucket.UID, bucket.Status.BucketName, bucket.Status.BucketID)
	return facts
}

func digest(data map[string][]byte) string {
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(sum, "%s=%x\n", key, data[key])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// metadata lists the objects of a kind in the module's namespace, or the namespace itself.
func metadata(ctx context.Context, kind schema.GroupVersionKind) ([]metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	where := client.ListOption(client.InNamespace(names.Namespace))
	if kind.Kind == "Namespace" {
		where = client.MatchingFields{"metadata.name": names.Namespace}
	}
	if err := site.Admin.List(ctx, found, where); err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	return found.Items, nil
}

// objectsOf lists the objects in the module's namespace, and the namespace, that the choice takes.
func objectsOf(ctx context.Context, choice func(labels map[string]string) bool) ([]string, error) {
	var names []string
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"},
		{Version: "v1", Kind: "Secret"},
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "PersistentVolumeClaim"},
		{Version: "v1", Kind: "Service"},
		{Version: "v1", Kind: "ServiceAccount"},
		{Group: "apps", Version: "v1", Kind: "StatefulSet"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "ControllerRevision"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	} {
		found, err := metadata(ctx, kind)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if choice(found[i].Labels) {
				names = append(names, kind.Kind+" "+found[i].Name)
			}
		}
	}
	return names, nil
}

// labelledObjects are those with the platform's label.
func labelledObjects(ctx context.Context) ([]string, error) {
	return objectsOf(ctx, func(labels map[string]string) bool { return labels[names.HeritageLabel] != "" })
}

// unlabelledObjects are those of the module without the platform's label.
func unlabelledObjects(ctx context.Context) ([]string, error) {
	return objectsOf(ctx, func(labels map[string]string) bool {
		return labels[names.ModuleLabel] == names.Module && labels[names.HeritageLabel] != names.Heritage
	})
}
