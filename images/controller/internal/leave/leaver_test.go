package leave_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhouse/system-s3/images/controller/internal/estate"
	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/images/controller/internal/leave"
	"github.com/deckhouse/system-s3/images/controller/internal/module"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
)

const (
	foreignFinalizer = "example.com/other"
	planeUID         = "0b7e1d1c-7a38-4a3c-9c5b-5d7a1c0e2f11"
	bucketUID        = "6e0d9c35-0b0f-4a3e-9a6e-3f5f0f1f2a3b"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ours(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
		names.HeritageLabel: names.Heritage, names.ModuleLabel: names.Module, names.AppLabel: names.GarageApp,
	}}
}

func condition(kind string) any {
	return map[string]any{"type": kind, "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": "2026-03-01T12:00:00Z"}
}

// kept is a disabled module right after the chart went: all that stays, as it was while the module was enabled.
func kept(t *testing.T) []client.Object {
	t.Helper()
	mod := module.Object()
	require.NoError(t, unstructured.SetNestedSlice(mod.Object, []any{
		condition("IsReady"), condition("StorageReady"), condition("PlacementReady"), condition("CapacityReady"), condition("MigrationReady"),
	}, "status", "conditions"))
	bucket := &v1alpha1.SystemBucket{ObjectMeta: ours("d8-demo", "data")}
	bucket.Finalizers, bucket.UID = []string{foreignFinalizer, names.Finalizer}, bucketUID
	bucket.Status = v1alpha1.SystemBucketStatus{BucketID: "id-in-garage", StoreID: "store"}
	foreign := &corev1.ConfigMap{ObjectMeta: ours("d8-demo", "data-s3")}
	set := &appsv1.StatefulSet{ObjectMeta: ours(names.Namespace, "garage-a"), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(3))}}
	set.UID = planeUID
	return []client.Object{
		&corev1.Namespace{ObjectMeta: ours("", names.Namespace)},
		set,
		&appsv1.ControllerRevision{ObjectMeta: ours(names.Namespace, "garage-a-1")},
		&corev1.Secret{ObjectMeta: ours(names.Namespace, "garage-a"), Data: map[string][]byte{"seed": []byte("s")}},
		&corev1.ConfigMap{ObjectMeta: ours(names.Namespace, "data-plane")},
		&corev1.PersistentVolumeClaim{ObjectMeta: ours(names.Namespace, "data-garage-a-0")},
		&rbacv1.Role{ObjectMeta: ours(names.Namespace, "leave")},
		&rbacv1.RoleBinding{ObjectMeta: ours(names.Namespace, "leave")},
		&appsv1.Deployment{ObjectMeta: ours(leave.PlatformNamespace, leave.Deployment), Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(1))}},
		bucket, foreign, mod,
	}
}

type cluster struct {
	client.WithWatch
	t *testing.T
}

func newCluster(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) cluster {
	t.Helper()
	return cluster{t: t, WithWatch: fixture.Builder(t).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()}
}

func (c cluster) pass() (leave.Progress, error) {
	return (&leave.Leaver{Client: c, Now: func() time.Time { return now }}).Pass(c.t.Context())
}

func (c cluster) read(object client.Object) bool {
	c.t.Helper()
	err := c.Get(c.t.Context(), client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return false
	}
	require.NoError(c.t, err)
	return true
}

// state is what matters of the objects, in words.
func (c cluster) state(objects []client.Object) map[string]string {
	c.t.Helper()
	found := map[string]string{}
	for _, object := range objects {
		object, ok := object.DeepCopyObject().(client.Object)
		require.True(c.t, ok)
		key := fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))
		if !c.read(object) {
			found[key] = "gone"
			continue
		}
		found[key] = fmt.Sprintf("heritage=%q finalizers=%v", object.GetLabels()[names.HeritageLabel], object.GetFinalizers())
		if set, ok := object.(*appsv1.StatefulSet); ok {
			found[key] += fmt.Sprintf(" replicas=%d", *set.Spec.Replicas)
		}
		if mod, ok := object.(*unstructured.Unstructured); ok {
			list, _, _ := unstructured.NestedSlice(mod.Object, "status", "conditions")
			found[key] = fmt.Sprintf("%d conditions", len(list))
		}
	}
	return found
}

func left() map[string]string {
	const off = `heritage="" finalizers=[]`
	return map[string]string{
		"*v1.Namespace /d8-system-s3":                            off,
		"*v1.StatefulSet d8-system-s3/garage-a":                  off + " replicas=0",
		"*v1.ControllerRevision d8-system-s3/garage-a-1":         off,
		"*v1.Secret d8-system-s3/garage-a":                       off,
		"*v1.ConfigMap d8-system-s3/data-plane":                  off,
		"*v1.PersistentVolumeClaim d8-system-s3/data-garage-a-0": off,
		"*v1.Role d8-system-s3/leave":                            `heritage="deckhouse" finalizers=[]`,
		"*v1.RoleBinding d8-system-s3/leave":                     `heritage="deckhouse" finalizers=[]`,
		"*v1.Deployment d8-system/system-s3-leave":               "gone",
		"*v1alpha1.SystemBucket d8-demo/data":                    `heritage="deckhouse" finalizers=[` + foreignFinalizer + `]`,
		"*v1.ConfigMap d8-demo/data-s3":                          `heritage="deckhouse" finalizers=[]`,
		"*unstructured.Unstructured /system-s3":                  "1 conditions",
	}
}

func TestLeave(t *testing.T) {
	t.Parallel()
	objects := kept(t)
	c := newCluster(t, interceptor.Funcs{}, objects...)
	progress, err := c.pass()
	require.NoError(t, err)
	assert.Equal(t, leave.Gone, progress)
	assert.Equal(t, left(), c.state(objects))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: "garage-a"}}
	require.True(t, c.read(secret))
	assert.Equal(t, map[string][]byte{"seed": []byte("s")}, secret.Data, "only labels are touched")
	progress, err = c.pass()
	require.NoError(t, err)
	assert.Equal(t, leave.Gone, progress, "again is no harm")
}

// Whatever call fails, and so wherever the process is killed, the next one ends the work.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	errKilled := errors.New("killed")
	for fatal := 1; ; fatal++ {
		objects, calls := kept(t), 0
		die := func() error {
			if calls++; calls == fatal {
				return errKilled
			}
			return nil
		}
		c := newCluster(t, interceptor.Funcs{
			Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
				if err := die(); err != nil {
					return err
				}
				return api.Get(ctx, key, object, o...)
			},
			Patch: func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, o ...client.PatchOption) error {
				if err := api.Patch(ctx, object, patch, o...); err != nil {
					return err
				}
				return die() // the change was made, and nobody was there to see it
			},
			SubResourcePatch: func(ctx context.Context, api client.Client, sub string, object client.Object, patch client.Patch, o ...client.SubResourcePatchOption) error {
				if err := api.SubResource(sub).Patch(ctx, object, patch, o...); err != nil {
					return err
				}
				return die()
			},
			Create: func(ctx context.Context, api client.WithWatch, object client.Object, o ...client.CreateOption) error {
				if err := api.Create(ctx, object, o...); err != nil {
					return err
				}
				return die()
			},
		}, objects...)
		_, err := c.pass()
		if err == nil {
			require.Greater(t, fatal, 20, "every call had its turn")
			return
		}
		require.ErrorIs(t, err, errKilled)
		progress, err := c.pass()
		require.NoError(t, err)
		require.Equal(t, leave.Gone, progress)
		require.Equal(t, left(), c.state(objects), "killed at call %d", fatal)
		require.Len(t, c.written(), 1, "killed at call %d", fatal)
	}
}

func TestNothingIsDone(t *testing.T) {
	t.Parallel()
	running := func(app string, deleted *metav1.Time) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: ours(names.Namespace, app+"-0")}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "garage-a", UID: planeUID, Controller: ptr.To(true)}}
		pod.Labels[names.AppLabel] = app
		pod.DeletionTimestamp, pod.Finalizers = deleted, []string{foreignFinalizer}
		return pod
	}
	cases := map[string]struct {
		reason   string
		with     client.Object
		progress leave.Progress
		stopped  bool
	}{
		"enabled":             {reason: "the plan tells that the module is enabled", with: &corev1.ConfigMap{ObjectMeta: ours(names.Namespace, names.PlanConfigMap)}, progress: leave.Asleep},
		"Garage still runs":   {reason: "it could not be enabled again in between", with: running(names.GarageApp, nil), progress: leave.Waiting, stopped: true},
		"controller ends":     {reason: "it could put its finalizer back", with: running(names.ControllerApp, &metav1.Time{Time: now}), progress: leave.Waiting, stopped: true},
		"on a node that died": {reason: "such a Pod may stay for weeks", with: running(names.GarageApp, &metav1.Time{Time: now.Add(-time.Hour)}), progress: leave.Gone, stopped: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := kept(t)
			cluster := newCluster(t, interceptor.Funcs{}, append(objects, c.with)...)
			progress, err := cluster.pass()
			require.NoError(t, err)
			require.Equal(t, c.progress, progress, c.reason)
			state := cluster.state(objects)
			assert.Equal(t, c.progress == leave.Gone, state["*v1.Deployment d8-system/system-s3-leave"] == "gone", c.reason)
			assert.Equal(t, c.progress == leave.Gone, state["*v1.Namespace /d8-system-s3"] == `heritage="" finalizers=[]`, c.reason)
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: "garage-a"}}
			require.True(t, cluster.read(set))
			assert.Equal(t, c.stopped, *set.Spec.Replicas == 0, c.reason)
		})
	}
}

// A plane that grows is without its StatefulSet for a moment; nobody may be left to put it back.
func TestEndsPodsWithoutOwner(t *testing.T) {
	t.Parallel()
	objects := slices.DeleteFunc(kept(t), func(o client.Object) bool { return o.GetUID() == planeUID })
	orphan := &corev1.Pod{ObjectMeta: ours(names.Namespace, "garage-a-0")}
	c := newCluster(t, interceptor.Funcs{}, append(objects, orphan)...)
	progress, err := c.pass()
	require.NoError(t, err)
	assert.Equal(t, leave.Gone, progress)
	assert.False(t, c.read(orphan))
}

// The module may be enabled again between any two calls: nothing is changed from then on.
func TestEnabledInBetween(t *testing.T) {
	t.Parallel()
	for at := 1; at < 20; at++ {
		patches, after := 0, 0
		c := newCluster(t, interceptor.Funcs{
			Patch: func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, o ...client.PatchOption) error {
				patches++
				if patches > at {
					after++
				}
				err := api.Patch(ctx, object, patch, o...)
				if patches == at {
					return errors.Join(err, api.Create(ctx, &corev1.ConfigMap{ObjectMeta: ours(names.Namespace, names.PlanConfigMap)}))
				}
				return err
			},
		}, kept(t)...)
		_, err := c.pass()
		require.NoError(t, err)
		if patches < at {
			return
		}
		require.Zero(t, after, "nothing after the module came back")
		progress, err := c.pass()
		require.NoError(t, err)
		require.Equal(t, leave.Asleep, progress)
	}
}

func TestNamespaceIsGone(t *testing.T) {
	t.Parallel()
	objects := kept(t)[8:]
	c := newCluster(t, interceptor.Funcs{}, objects...)
	progress, err := c.pass()
	require.NoError(t, err)
	assert.Equal(t, leave.Gone, progress, "SystemBuckets elsewhere are let go all the same")
	assert.Contains(t, c.state(objects)["*v1alpha1.SystemBucket d8-demo/data"], "["+foreignFinalizer+"]")
}

// written is the list of the buckets that were let go.
func (c cluster) written() map[types.UID]estate.Entry {
	c.t.Helper()
	entries, err := (&estate.Book{Reader: c, Writer: c}).Read(c.t.Context())
	require.NoError(c.t, err)
	return entries
}

// What is let go is written down before, and says that it does not serve.
func TestLetsBucketsGo(t *testing.T) {
	t.Parallel()
	deleted := &v1alpha1.SystemBucket{ObjectMeta: ours("d8-demo", "deleted")}
	deleted.UID, deleted.DeletionTimestamp, deleted.Finalizers = "deleted", &metav1.Time{Time: now}, []string{names.Finalizer}
	deleted.Status.BucketID = "half-empty"
	empty := &v1alpha1.SystemBucket{ObjectMeta: ours("d8-demo", "empty")}
	empty.UID, empty.Finalizers = "empty", []string{names.Finalizer}
	objects := append(kept(t), deleted, empty)
	c := newCluster(t, interceptor.Funcs{}, objects...)
	_, err := c.pass()
	require.NoError(t, err)
	assert.Equal(t, map[types.UID]estate.Entry{
		bucketUID: {UID: bucketUID, Namespace: "d8-demo", Name: "data", Bucket: "id-in-garage", Store: "store"},
		"deleted": {UID: "deleted", Namespace: "d8-demo", Name: "deleted", Bucket: "half-empty"},
	}, c.written(), "one without a bucket has no data")
	assert.False(t, c.read(deleted), "it was waiting for us only")
	for _, name := range []string{"data", "empty"} {
		sb := &v1alpha1.SystemBucket{ObjectMeta: metav1.ObjectMeta{Namespace: "d8-demo", Name: name}}
		require.True(t, c.read(sb))
		ready := meta.FindStatusCondition(sb.Status.Conditions, v1alpha1.ConditionReady)
		require.NotNil(t, ready)
		assert.Equal(t, metav1.ConditionFalse, ready.Status)
		assert.Equal(t, v1alpha1.ReasonWaitingForStorage, ready.Reason)
		assert.Contains(t, ready.Message, "is disabled")
	}
}

func TestKeepsTheFinalizerUntilItIsWrittenDown(t *testing.T) {
	t.Parallel()
	errRefused := errors.New("refused")
	c := newCluster(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errRefused
		},
	}, kept(t)...)
	_, err := c.pass()
	require.ErrorIs(t, err, errRefused)
	sb := &v1alpha1.SystemBucket{ObjectMeta: metav1.ObjectMeta{Namespace: "d8-demo", Name: "data"}}
	require.True(t, c.read(sb))
	assert.Contains(t, sb.Finalizers, names.Finalizer, "its data could be left behind for ever")
}

func TestSleepingDeploymentStays(t *testing.T) {
	t.Parallel()
	asleep := &appsv1.Deployment{ObjectMeta: ours(leave.PlatformNamespace, leave.Deployment), Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(0))}}
	c := newCluster(t, interceptor.Funcs{}, asleep)
	progress, err := c.pass()
	require.NoError(t, err)
	assert.Equal(t, leave.Waiting, progress)
	assert.True(t, c.read(asleep), "it belongs to an enabled module")
}

func TestComeBack(t *testing.T) {
	t.Parallel()
	objects := kept(t)
	c := newCluster(t, interceptor.Funcs{}, objects...)
	_, err := c.pass()
	require.NoError(t, err)
	back := &leave.ComeBack{Reader: c, Writer: c}
	require.NoError(t, back.Pass(t.Context()))
	assert.Equal(t, left(), c.state(objects), "nothing while the module is disabled")

	require.NoError(t, c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: "of-somebody"}}))
	require.NoError(t, c.Create(t.Context(), fixture.PlanMap(t, fixture.Plan(3))))
	require.NoError(t, back.Pass(t.Context()))
	const on = `heritage="deckhouse" finalizers=[]`
	want := left()
	for _, key := range []string{
		"*v1.Namespace /d8-system-s3", "*v1.ControllerRevision d8-system-s3/garage-a-1", "*v1.Secret d8-system-s3/garage-a",
		"*v1.ConfigMap d8-system-s3/data-plane", "*v1.PersistentVolumeClaim d8-system-s3/data-garage-a-0",
	} {
		want[key] = on
	}
	want["*v1.StatefulSet d8-system-s3/garage-a"] = on + " replicas=3"
	assert.Equal(t, want, c.state(objects))
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: "of-somebody"}}
	require.True(t, c.read(foreign))
	assert.Empty(t, foreign.Labels)

	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: "garage-a"}}
	require.True(t, c.read(set))
	set.Spec.Replicas = ptr.To(int32(1))
	require.NoError(t, c.Update(t.Context(), set))
	require.NoError(t, back.Pass(t.Context()))
	require.True(t, c.read(set))
	assert.Equal(t, int32(1), *set.Spec.Replicas, "any other number is the chart's business")
}
