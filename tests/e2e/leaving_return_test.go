package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

// returnsElsewhere enables the module after its kept objects were edited by hand and with other settings than those
// that the store was made with: it comes back as it was. The class is one that a store does not move to.
func (s *leaving) returnsElsewhere(t *testing.T) {
	ctx := t.Context()
	before := planeOf(t)
	require.NoError(t, site.Disable(ctx))
	s.hasLeft(t)
	merge := func(object client.Object, namespace, name, patch string) {
		object.SetNamespace(namespace)
		object.SetName(name)
		require.NoError(t, site.Deckhouse.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch))))
	}
	merge(&appsv1.StatefulSet{}, names.Namespace, names.GarageObject(plane), `{"metadata":{"labels":{"edited":"by-hand"}},"spec":{"replicas":7}}`)
	merge(&corev1.ConfigMap{}, names.Namespace, names.GarageObject(plane), `{"data":{"garage.toml":"nonsense = true\n"}}`)
	merge(&corev1.ConfigMap{}, namespace, names.ConnectionConfigMap(mainBucket), `{"data":{"BUCKET_NAME":"another"}}`)
	gone := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.StateConfigMap}}
	require.NoError(t, client.IgnoreNotFound(site.Deckhouse.Delete(ctx, gone)))
	merge(&appsv1.StatefulSet{}, names.Namespace, names.GarageObject(plane), `{"spec":{"replicas":0}}`)

	require.NoError(t, site.Configure(ctx, true, map[string]any{
		"storageClass": "immediate", "highAvailability": before.Replicas == 1,
	}))
	s.hasReturned(t)
	after := planeOf(t)
	require.Equal(t, before.StorageClass, after.StorageClass, "the class it was made with")
	require.Equal(t, before.Replicas, after.Replicas, "the replicas it was made with")
	connection := &corev1.ConfigMap{}
	require.NoError(t, site.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: names.ConnectionConfigMap(mainBucket)}, connection))
	require.Equal(t, bucketName(t, mainBucket), connection.Data["BUCKET_NAME"])
	require.NoError(t, site.Configure(ctx, true, nil))
	require.NoError(t, site.AwaitCondition(ctx, moduleLimit, storageReady, plan.ReasonReady))
}

// planeOf is the plane that is the store.
func planeOf(t *testing.T) plan.Plane {
	t.Helper()
	decided, err := readPlan(t.Context())
	require.NoError(t, err)
	i := slices.IndexFunc(decided.Planes, func(p plan.Plane) bool { return p.Role == plan.RoleActive })
	require.GreaterOrEqual(t, i, 0)
	return decided.Planes[i]
}

func readPlan(ctx context.Context) (plan.Plan, error) {
	marker := &corev1.ConfigMap{}
	var decided plan.Plan
	if err := site.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.PlanConfigMap}, marker); err != nil {
		return decided, fmt.Errorf("read the plan: %w", err)
	}
	if err := json.Unmarshal([]byte(marker.Data[names.PlanKey]), &decided); err != nil {
		return decided, fmt.Errorf("decode the plan: %w", err)
	}
	return decided, nil
}

// losesLabel takes the platform's label off a namespace with a bucket: what is there goes on, new ones are refused.
func (s *leaving) losesLabel(t *testing.T) {
	ctx := t.Context()
	label := func(ctx context.Context, value string) error {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"heritage":`+value+`}}}`))
		return site.Deckhouse.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, patch)
	}
	require.NoError(t, label(ctx, "null"))
	t.Cleanup(func() { require.NoError(t, label(context.Background(), `"deckhouse"`)) })
	refused := &v1alpha1.SystemBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "refused"},
		Spec:       v1alpha1.SystemBucketSpec{Size: resource.MustParse("10Mi")},
	}
	require.NoError(t, site.Await(ctx, stage.Wish{What: "new SystemBuckets to be refused", Limit: shortLimit, Look: func(ctx context.Context) (bool, string, error) {
		err := site.Admin.Create(ctx, refused, client.DryRunAll)
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err), "it is still accepted", nil
	}}))
	s.readsBack(t)
	s.writes(t)
	require.NoError(t, site.Bucket(ctx, mainKey(), "1100Mi"), "its size may be changed")
	require.NoError(t, site.AwaitBucket(ctx, mainKey(), moduleLimit))
	require.NoError(t, site.Bucket(ctx, mainKey(), "1Gi"))
}
