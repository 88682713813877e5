package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/bucket"
	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

const namespace, name, uid = "d8-demo", "data", "6e0d9c35-0b0f-4a3e-9a6e-3f5f0f1f2a3b"

var key = client.ObjectKey{Namespace: namespace, Name: name}

// stage is one SystemBucket in a fake cluster.
type stage struct {
	t          *testing.T
	client     client.WithWatch
	board      *backend.Board
	events     *events.FakeRecorder
	reconciler *bucket.Reconciler
}

func newStage(t *testing.T, objects ...client.Object) *stage {
	t.Helper()
	sb := &v1alpha1.SystemBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid, Generation: 1},
		Spec:       v1alpha1.SystemBucketSpec{Size: resource.MustParse("10Mi"), MaxObjects: aws.Int64(1000)},
	}
	s := &stage{t: t, board: backend.NewBoard(), events: events.NewFakeRecorder(100)}
	s.client = fixture.Builder(t).WithObjects(append(objects, sb)...).Build()
	// An inventory of no age lists anew for every pass.
	s.reconciler = &bucket.Reconciler{
		Client: s.client, Board: s.board, Events: s.events, Inventory: &bucket.Inventory{Now: time.Now}, Remover: bucket.NewRemover(),
	}
	return s
}

// on puts the store with a Garage cluster on the board.
func (s *stage) on(cluster *garagetest.Cluster) *stage {
	s.board.Post(backend.Store{
		Exists: true, Ready: plan.Verdict{OK: true, Reason: plan.ReasonReady, Message: "Fine."},
		Connection: fixture.Connection(cluster),
	})
	return s
}

func (s *stage) pass() {
	s.t.Helper()
	_, err := s.reconciler.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: key})
	require.NoError(s.t, err)
}

func (s *stage) get() *v1alpha1.SystemBucket {
	s.t.Helper()
	sb := &v1alpha1.SystemBucket{}
	require.NoError(s.t, s.client.Get(s.t.Context(), key, sb))
	return sb
}

func (s *stage) ready() metav1.Condition {
	s.t.Helper()
	condition := meta.FindStatusCondition(s.get().Status.Conditions, v1alpha1.ConditionReady)
	require.NotNil(s.t, condition)
	return *condition
}

func (s *stage) told() []string {
	var told []string
	for {
		select {
		case event := <-s.events.Events:
			told = append(told, event)
		default:
			return told
		}
	}
}

func (s *stage) gone() bool {
	return apierrors.IsNotFound(s.client.Get(s.t.Context(), key, &v1alpha1.SystemBucket{}))
}

func (s *stage) put(cluster *garagetest.Cluster, objectKey string, size int) {
	s.t.Helper()
	_, err := fixture.Connection(cluster).S3.PutObject(s.t.Context(), &s3.PutObjectInput{
		Bucket: aws.String(names.Bucket(namespace, name, uid)), Key: aws.String(objectKey),
		Body: strings.NewReader(strings.Repeat("x", size)),
	})
	require.NoError(s.t, err)
}

func TestCreate(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := newStage(t).on(cluster)
	s.pass()

	sb := s.get()
	assert.Contains(t, sb.Finalizers, names.Finalizer)
	assert.Equal(t, names.Bucket(namespace, name, uid), sb.Status.BucketName)
	assert.EqualValues(t, 1, sb.Status.ObservedGeneration)
	assert.Equal(t, metav1.ConditionTrue, s.ready().Status)
	assert.True(t, meta.IsStatusConditionTrue(sb.Status.Conditions, v1alpha1.ConditionQuotaAvailable))
	assert.EqualValues(t, 0, *sb.Status.Objects)

	made, err := cluster.Client().GetBucketByAlias(t.Context(), sb.Status.BucketName)
	require.NoError(t, err)
	assert.Equal(t, made.ID, sb.Status.BucketID)
	assert.True(t, made.Quotas.Equal(garage.Quotas{MaxSize: aws.Int64(10 << 20), MaxObjects: aws.Int64(1000)}))
	assert.Equal(t, garage.Permissions{Read: true, Write: true}, made.Granted(cluster.KeyID), "never owner")

	var parameters corev1.ConfigMap
	require.NoError(t, s.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "data-s3"}, &parameters))
	assert.Equal(t, map[string]string{
		"AWS_ENDPOINT_URL_S3": "https://s3.d8-system-s3.svc", "AWS_ENDPOINT_URL_STS": "https://sts.d8-system-s3.svc",
		"AWS_REGION": "system-s3", "AWS_DEFAULT_REGION": "system-s3",
		"AWS_ROLE_ARN":                "arn:aws:iam::000000000000:role/d8-demo/data",
		"AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/secrets/system-s3/token",
		"AWS_CA_BUNDLE":               "/var/run/secrets/system-s3/ca.crt",
		"NODE_EXTRA_CA_CERTS":         "/var/run/secrets/system-s3/ca.crt",
		"RCLONE_CA_CERT":              "/var/run/secrets/system-s3/ca.crt",
		"BUCKET_NAME":                 sb.Status.BucketName, "ca.crt": fixture.CA,
	}, parameters.Data)
	assert.True(t, metav1.IsControlledBy(&parameters, sb))
	assert.Equal(t, map[string]string{"heritage": "deckhouse", "module": "system-s3"}, parameters.Labels)
	assert.Len(t, s.told(), 1, "one event: it is ready")

	before := s.get().ResourceVersion
	s.pass()
	assert.Equal(t, before, s.get().ResourceVersion, "a quiet pass writes nothing")
	assert.Empty(t, s.told())
}

func TestUseAndQuota(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := newStage(t).on(cluster)
	s.pass()
	s.put(cluster, "big", 9<<20)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		s.pass()
		assert.EqualValues(c, 9<<20, s.get().Status.Used.Value())
	}, waitFor, tick)
	condition := meta.FindStatusCondition(s.get().Status.Conditions, v1alpha1.ConditionQuotaAvailable)
	assert.Equal(t, "NearQuota", condition.Reason)

	sb := s.get()
	sb.Spec.Size, sb.Spec.MaxObjects, sb.Generation = resource.MustParse("1Gi"), nil, 2
	require.NoError(t, s.client.Update(t.Context(), sb))
	s.pass()
	made, err := cluster.Client().GetBucketByID(t.Context(), sb.Status.BucketID)
	require.NoError(t, err)
	assert.True(t, made.Quotas.Equal(garage.Quotas{MaxSize: aws.Int64(1 << 30)}), "no maxObjects is no limit, got %+v", made.Quotas)
	condition = meta.FindStatusCondition(s.get().Status.Conditions, v1alpha1.ConditionQuotaAvailable)
	assert.Equal(t, "WithinQuota", condition.Reason)
}

func TestMendsWhatOthersChanged(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := newStage(t).on(cluster)
	s.pass()
	admin, id := cluster.Client(), s.get().Status.BucketID
	_, err := admin.SetBucketQuotas(t.Context(), id, garage.Quotas{})
	require.NoError(t, err)
	_, err = admin.DenyBucketKey(t.Context(), id, cluster.KeyID, garage.Permissions{Write: true})
	require.NoError(t, err)
	require.NoError(t, s.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-s3"}}))
	s.pass()
	mended, err := admin.GetBucketByID(t.Context(), id)
	require.NoError(t, err)
	assert.NotNil(t, mended.Quotas.MaxSize)
	assert.True(t, mended.Granted(cluster.KeyID).Write)
	require.NoError(t, s.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "data-s3"}, &corev1.ConfigMap{}))
}

func TestLostStatusFindsItsBucket(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := newStage(t).on(cluster)
	s.pass()
	sb := s.get()
	id := sb.Status.BucketID
	sb.Status = v1alpha1.SystemBucketStatus{}
	require.NoError(t, s.client.Status().Update(t.Context(), sb))
	s.pass()
	assert.Equal(t, id, s.get().Status.BucketID, "the name holds the UID, so the bucket with it is ours")
}

func TestVanishedIsToldAndNotMadeAgain(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := newStage(t).on(cluster)
	s.pass()
	require.NoError(t, cluster.Client().DeleteBucket(t.Context(), s.get().Status.BucketID))
	s.pass()
	assert.Equal(t, "BackendError", s.ready().Reason)
	assert.Contains(t, s.ready().Message, "is gone from Garage")
	all, err := cluster.Client().ListBucketsInfo(t.Context(), "", 10)
	require.NoError(t, err)
	assert.Empty(t, all)
	require.NoError(t, s.client.Delete(t.Context(), s.get()))
	s.pass()
	assert.True(t, s.gone(), "what is gone can be deleted")
}

func TestGarageDown(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := newStage(t).on(cluster)
	s.pass()
	id := s.get().Status.BucketID
	cluster.Nodes[0].Kill()
	s.pass()
	assert.Equal(t, "BackendError", s.ready().Reason)
	assert.Equal(t, id, s.get().Status.BucketID, "unknown is not absent")
	require.NoError(t, s.client.Delete(t.Context(), s.get()))
	s.pass()
	assert.Equal(t, "Deleting", s.ready().Reason)
	assert.Contains(t, s.get().Finalizers, names.Finalizer, "data that cannot be reached is not forgotten")
	cluster.Nodes[0].Start(t)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		if !s.gone() {
			s.pass()
		}
		assert.True(c, s.gone())
	}, waitFor, tick)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := newStage(t).on(cluster)
	s.pass()
	sb := s.get()
	for i := range 130 {
		s.put(cluster, fmt.Sprintf("many/%03d", i), 10)
	}
	for _, odd := range []string{"plus+and space", "per%cent%20", "кириллица/ключ", "a&b<c>\"d'", "new\nline", "tab\tand\r", "bell\x07", "trailing/", "..", "a//b"} {
		s.put(cluster, odd, 10)
	}
	_, err := fixture.Connection(cluster).S3.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{
		Bucket: aws.String(sb.Status.BucketName), Key: aws.String("unfinished"),
	})
	require.NoError(t, err)
	require.NoError(t, s.client.Delete(t.Context(), sb))
	s.told()
	s.pass()
	assert.True(t, s.gone(), "one pass is enough for so few")
	_, err = cluster.Client().GetBucketByID(t.Context(), sb.Status.BucketID)
	assert.True(t, garage.IsAbsent(err))
	assert.Len(t, s.told(), 1, "one event: it is being deleted")
}

func TestDeleteWithoutBucket(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.board.Post(backend.Store{Ready: plan.Verdict{Reason: plan.ReasonNoStorageClass, Message: "There is no StorageClass."}})
	s.pass()
	assert.Equal(t, "NoStorageClass", s.ready().Reason)
	assert.Contains(t, s.ready().Message, "There is no StorageClass.")
	require.NoError(t, s.client.Delete(t.Context(), s.get()))
	s.pass()
	assert.True(t, s.gone(), "there is no data, so nothing is waited for")
}

func TestDeleteWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	sb := s.get()
	sb.Finalizers = []string{names.Finalizer}
	require.NoError(t, s.client.Update(t.Context(), sb))
	sb.Status.BucketID = "recorded"
	require.NoError(t, s.client.Status().Update(t.Context(), sb))
	require.NoError(t, s.client.Delete(t.Context(), sb))
	s.board.Post(backend.Store{Exists: true, Ready: plan.Verdict{Reason: plan.ReasonQuorumLost, Message: "1 of 3."}})
	s.pass()
	assert.Equal(t, "Deleting", s.ready().Reason)
	assert.Contains(t, s.ready().Message, "1 of 3.")
	s.board.Post(backend.Store{Ready: plan.Verdict{Reason: plan.ReasonWaitingForFirstBucket}})
	s.pass()
	assert.True(t, s.gone(), "the store was removed with its namespace, there is nothing left to delete")
}

func TestTakesOverWhatAnEarlierBucketLeft(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	left := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-s3", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "storage.deckhouse.io/v1alpha1", Kind: names.Kind, Name: name, UID: "earlier", Controller: aws.Bool(true),
		}}},
		Data: map[string]string{"BUCKET_NAME": "earlier"},
	}
	s := newStage(t, left).on(cluster)
	s.pass()
	assert.Equal(t, metav1.ConditionTrue, s.ready().Status, "the garbage collector may be late")
	var taken corev1.ConfigMap
	require.NoError(t, s.client.Get(t.Context(), client.ObjectKeyFromObject(left), &taken))
	assert.True(t, metav1.IsControlledBy(&taken, s.get()))
	assert.Len(t, taken.OwnerReferences, 1)
	assert.Equal(t, s.get().Status.BucketName, taken.Data["BUCKET_NAME"])
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		store  backend.Store
		want   string
	}{
		"first bucket": {"this very bucket is the first", backend.Store{Ready: plan.Verdict{Reason: "WaitingForFirstBucket"}}, "being made"},
		"quorum lost":  {"the store's own words", backend.Store{Exists: true, Ready: plan.Verdict{Reason: "QuorumLost", Message: "1 of 3."}}, "QuorumLost): 1 of 3."},
		"key missing":  {"ready, but not for changes yet", backend.Store{Exists: true, Ready: plan.Verdict{OK: true, Reason: "Ready"}}, "being made"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.board.Post(c.store)
			s.pass()
			assert.Equal(t, "WaitingForStorage", s.ready().Reason, c.reason)
			assert.Contains(t, s.ready().Message, c.want, c.reason)
		})
	}
}

func TestNothingIsKnown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	before := s.get().ResourceVersion
	s.pass()
	assert.Equal(t, before, s.get().ResourceVersion, "the module leaves, or nobody has looked yet")
}

func TestInvalidSpec(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	sb := s.get()
	sb.Spec.Size = resource.MustParse("0")
	require.NoError(t, s.client.Update(t.Context(), sb))
	s.board.Post(backend.Store{Ready: plan.Verdict{OK: true}})
	s.pass()
	assert.Equal(t, "InvalidSpec", s.ready().Reason, "admission may be off")
}

func TestForeignConfigMapIsLeftAlone(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	foreign := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-s3", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Pod", Name: "x", UID: "other", Controller: aws.Bool(true),
		}}},
		Data: map[string]string{"mine": "yes"},
	}
	s := newStage(t, foreign).on(cluster)
	s.pass()
	assert.Equal(t, "InvalidSpec", s.ready().Reason)
	assert.Contains(t, s.ready().Message, "does not belong to this SystemBucket")
	var kept corev1.ConfigMap
	require.NoError(t, s.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), &kept))
	assert.Equal(t, foreign.Data, kept.Data)
}

var errCrash = errors.New("crash")

// TestCrashBeforeTheRecord kills the pass right after the bucket was made: the next pass makes another one, and only
// that one gets the name.
func TestCrashBeforeTheRecord(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := newStage(t).on(cluster)
	crash := true
	s.reconciler.Client = interceptor.NewClient(s.client, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, options ...client.SubResourceUpdateOption) error {
			if crash {
				crash = false
				return errCrash
			}
			return c.SubResource(sub).Update(ctx, object, options...)
		},
	})
	_, err := s.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	require.ErrorIs(t, err, errCrash)
	s.pass()
	assert.Equal(t, metav1.ConditionTrue, s.ready().Status)
	all, err := cluster.Client().ListBucketsInfo(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, each := range all {
		assert.Equal(t, each.ID == s.get().Status.BucketID, each.HasAlias(s.get().Status.BucketName))
	}
}
