package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

const (
	mainBucket   = "main"
	storageReady = "StorageReady"
)

func mainKey() client.ObjectKey { return client.ObjectKey{Namespace: namespace, Name: mainBucket} }

// garageObjects lists what exists of Garage, by kind and name.
func garageObjects(ctx context.Context) ([]string, error) {
	var found []string
	lists := map[string]client.ObjectList{
		"StatefulSet": &appsv1.StatefulSetList{}, "Claim": &corev1.PersistentVolumeClaimList{},
	}
	for kind, list := range lists {
		if err := site.Admin.List(ctx, list, client.InNamespace(names.Namespace)); err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind, err)
		}
		switch list := list.(type) {
		case *appsv1.StatefulSetList:
			for i := range list.Items {
				found = append(found, kind+" "+list.Items[i].Name)
			}
		case *corev1.PersistentVolumeClaimList:
			for i := range list.Items {
				found = append(found, kind+" "+list.Items[i].Name)
			}
		}
	}
	pods := &corev1.PodList{}
	err := site.Admin.List(ctx, pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.GarageApp})
	for i := range pods.Items {
		found = append(found, "Pod "+pods.Items[i].Name)
	}
	return found, err
}

// reset leaves an enabled module without a store and without buckets.
func (s *story) reset(t *testing.T) {
	ctx := t.Context()
	left, err := garageObjects(ctx)
	require.NoError(t, err)
	buckets := &v1alpha1.SystemBucketList{}
	if err := site.Admin.List(ctx, buckets); err != nil {
		buckets.Items = nil // the module was never enabled: there is no such resource
	}
	if len(left)+len(buckets.Items) > 0 {
		t.Logf("taking away %v and %d SystemBuckets of an earlier run", left, len(buckets.Items))
		s.leave(t, buckets.Items)
	}
	require.NoError(t, site.Namespace(ctx, namespace))
	require.NoError(t, site.Configure(ctx, true, nil))
	require.NoError(t, site.AwaitCondition(ctx, moduleLimit, storageReady, plan.ReasonWaitingForFirstBucket))
}

// leave does what an administrator does who wants the data gone: disables the module and deletes what it keeps.
func (s *story) leave(t *testing.T, buckets []v1alpha1.SystemBucket) {
	ctx := t.Context()
	require.NoError(t, site.Disable(ctx))
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the controller to be gone", Limit: moduleLimit, Look: absent(
		client.ObjectKey{Namespace: names.Namespace, Name: names.ControllerApp}, &appsv1.Deployment{})}))
	for i := range buckets {
		bucket := &buckets[i]
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		require.NoError(t, client.IgnoreNotFound(site.Deckhouse.Patch(ctx, bucket, patch)))
		require.NoError(t, client.IgnoreNotFound(site.Deckhouse.Delete(ctx, bucket)))
	}
	store := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.Namespace}}
	require.NoError(t, client.IgnoreNotFound(site.Deckhouse.Delete(ctx, store)))
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the store's namespace to be gone", Limit: moduleLimit, Look: absent(
		client.ObjectKeyFromObject(store), &corev1.Namespace{})}))
}

// absent is fulfilled when there is no such object.
func absent(key client.ObjectKey, object client.Object) func(context.Context) (bool, string, error) {
	return func(ctx context.Context) (bool, string, error) {
		err := site.Admin.Get(ctx, key, object)
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		return false, "", err
	}
}

func (*story) waitsForFirstBucket(t *testing.T) {
	condition, err := site.Condition(t.Context(), storageReady)
	require.NoError(t, err)
	require.Equal(t, "False", condition.Status)
	require.Equal(t, plan.ReasonWaitingForFirstBucket, condition.Reason)
	require.NotEmpty(t, condition.Message)
	found, err := garageObjects(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "the controller to run", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		deployment := &appsv1.Deployment{}
		err := site.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.ControllerApp}, deployment)
		return deployment.Status.AvailableReplicas > 0, "", err
	}}))
}

func (*story) refusesSettings(t *testing.T) {
	cases := map[string]struct {
		reason   string
		settings map[string]any
		field    string
	}{
		"wrong type":    {reason: "not a boolean", settings: map[string]any{"highAvailability": "yes"}, field: "highAvailability"},
		"unknown value": {reason: "not in the list", settings: map[string]any{"logLevel": "Loud"}, field: "logLevel"},
		"bad name":      {reason: "no StorageClass can be called so", settings: map[string]any{"storageClass": "No Such"}, field: "storageClass"},
		"unknown field": {reason: "replicas follow from the cluster", settings: map[string]any{"replicas": int64(5)}, field: "replicas"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := site.Configure(t.Context(), true, c.settings)
			require.ErrorContains(t, err, c.field, c.reason)
		})
	}
	require.NoError(t, site.Configure(t.Context(), true, nil))
}

func (*story) refusesBuckets(t *testing.T) {
	ctx := t.Context()
	for name, labels := range map[string]map[string]string{
		"d8-e2e-plain": nil, // a name of the platform, but not its label
		"e2e-labelled": {names.HeritageLabel: names.Heritage},
	} {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		require.NoError(t, client.IgnoreAlreadyExists(site.Deckhouse.Create(ctx, object)))
		t.Cleanup(func() { _ = site.Deckhouse.Delete(context.Background(), object) })
	}
	cases := map[string]struct {
		reason, namespace, bucket, size, text string
	}{
		"too small":         {reason: "at least 1Mi", namespace: namespace, bucket: "bad", size: "1Ki", text: "size"},
		"negative":          {reason: "at least 1Mi", namespace: namespace, bucket: "bad", size: "-1Gi", text: "size"},
		"absurd":            {reason: "less than 1Pi", namespace: namespace, bucket: "bad", size: "1Pi", text: "size"},
		"name with dots":    {reason: "a DNS label", namespace: namespace, bucket: "bad.name", size: "1Gi", text: "metadata.name"},
		"without the label": {reason: "both are needed", namespace: "d8-e2e-plain", bucket: "bad", size: "1Gi", text: "heritage"},
		"without the name":  {reason: "both are needed", namespace: "e2e-labelled", bucket: "bad", size: "1Gi", text: "d8-"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bucket := &v1alpha1.SystemBucket{
				ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: c.bucket},
				Spec:       v1alpha1.SystemBucketSpec{Size: resource.MustParse(c.size)},
			}
			require.ErrorContains(t, site.Admin.Create(t.Context(), bucket), c.text, c.reason)
		})
	}
}

const defaultClass = "storageclass.kubernetes.io/is-default-class"

// markDefault makes the StorageClasses the default ones, or not.
func markDefault(ctx context.Context, classes []storagev1.StorageClass, mark string) error {
	for i := range classes {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, defaultClass, mark)
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: classes[i].Name}}
		if err := site.Deckhouse.Patch(ctx, class, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return fmt.Errorf("mark StorageClass %s: %w", class.Name, err)
		}
	}
	return nil
}

func (*story) needsStorageClass(t *testing.T) {
	ctx := t.Context()
	all := &storagev1.StorageClassList{}
	require.NoError(t, site.Admin.List(ctx, all))
	var marked []storagev1.StorageClass
	for _, class := range all.Items {
		if class.Annotations[defaultClass] == "true" {
			marked = append(marked, class)
		}
	}
	require.NotEmpty(t, marked)
	t.Cleanup(func() { require.NoError(t, markDefault(context.Background(), marked, "true")) })
	require.NoError(t, markDefault(ctx, marked, "false"))

	require.NoError(t, site.Bucket(ctx, mainKey(), "1Gi"))
	require.NoError(t, site.AwaitCondition(ctx, moduleLimit, storageReady, plan.ReasonNoStorageClass))
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the SystemBucket to say so", Limit: shortLimit, Look: func(ctx context.Context) (bool, string, error) {
		_, ready, err := site.ReadBucket(ctx, mainKey())
		return ready.Status == metav1.ConditionFalse && ready.Reason == v1alpha1.ReasonNoStorageClass, ready.Reason + " " + ready.Message, err
	}}))
	found, err := garageObjects(ctx)
	require.NoError(t, err)
	require.Empty(t, found)
}
