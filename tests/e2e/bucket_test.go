package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

// TestBucket plays the life of buckets on a store that runs, from whatever state.
func TestBucket(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			site.Diagnose(ctx, namespace)
		}
	})
	s := &leaving{story: story{ledger: &ledger{}}}
	require.True(t, t.Run("a store", s.begins))
	t.Run("quotas change at any time and are told", s.changesQuotas)
	t.Run("a deletion takes the bucket from keys in flight", s.deletesUnderKeys)
	t.Run("what others change in Garage is put right", s.putsRight)
	t.Run("a bucket that vanished is told and not made again", s.tellsVanished)
	t.Run("a deletion waits for a store that is away", s.waitsForStore)
}

// filled makes a bucket with so many small objects and returns its S3 name and a client that renews its key.
func (s *leaving) filled(t *testing.T, name string, objects int) (string, *s3.Client) {
	t.Helper()
	bucket := newBucket(t, name, "100Mi")
	allowBucket(t, name, name, names.ReadSubresource, names.WriteSubresource)
	d := s.door(t)
	c := d.s3(aws.NewCredentialsCache(d.of(name, name, "")))
	for n := range objects {
		require.NoError(t, put(t.Context(), c, bucket, fmt.Sprintf("object-%d", n), []byte("content")))
	}
	return bucket, c
}

func deleteBucket(t *testing.T, name string) *v1alpha1.SystemBucket {
	t.Helper()
	sb := &v1alpha1.SystemBucket{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	// Also at the end of a test, when its context is done.
	require.NoError(t, client.IgnoreNotFound(site.Admin.Delete(context.WithoutCancel(t.Context()), sb)))
	return sb
}

func awaitGone(t *testing.T, sb *v1alpha1.SystemBucket) {
	t.Helper()
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "SystemBucket " + sb.Name + " to go", Limit: moduleLimit, Look: absent(
		client.ObjectKeyFromObject(sb), &v1alpha1.SystemBucket{})}))
}

// awaitStatus waits until the SystemBucket's status is as wanted.
func awaitStatus(t *testing.T, name, what string, wanted func(*v1alpha1.SystemBucket, metav1.Condition) bool) {
	t.Helper()
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "SystemBucket " + name + " to say " + what, Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		sb, ready, err := site.ReadBucket(ctx, client.ObjectKey{Namespace: namespace, Name: name})
		if err != nil {
			return false, "", err
		}
		return wanted(sb, ready), ready.Message, nil
	}}))
}

func (s *leaving) changesQuotas(t *testing.T) {
	bucket, c := s.filled(t, "quota", 1)
	t.Cleanup(func() { deleteBucket(t, "quota") })
	key := client.ObjectKey{Namespace: namespace, Name: "quota"}
	large := make([]byte, 9<<20)
	for _, step := range []struct {
		size, object, answer, reason string
	}{
		{size: "10Mi", object: "large", reason: v1alpha1.ReasonNearQuota},
		{size: "5Mi", object: "refused", answer: "QuotaExceeded", reason: v1alpha1.ReasonQuotaReached},
		{size: "200Mi", object: "accepted", reason: v1alpha1.ReasonWithinQuota},
	} {
		require.NoError(t, site.Bucket(t.Context(), key, step.size))
		wanted := resource.MustParse(step.size)
		awaitStatus(t, "quota", "that "+step.size+" is in force", func(sb *v1alpha1.SystemBucket, _ metav1.Condition) bool {
			return sb.Status.Quota != nil && sb.Status.Quota.Size != nil && sb.Status.Quota.Size.Cmp(wanted) == 0
		})
		require.Equal(t, step.answer, code(put(t.Context(), c, bucket, step.object, large)), "with %s", step.size)
		awaitStatus(t, "quota", step.reason, func(sb *v1alpha1.SystemBucket, _ metav1.Condition) bool {
			told := meta.FindStatusCondition(sb.Status.Conditions, v1alpha1.ConditionQuotaAvailable)
			return told != nil && told.Reason == step.reason && sb.Status.Used.Value() >= 9<<20
		})
	}
}

func (s *leaving) deletesUnderKeys(t *testing.T) {
	ctx := t.Context()
	bucket, _ := s.filled(t, "inflight", 300)
	d := s.door(t)
	key, err := d.of("inflight", "inflight", "").Retrieve(ctx)
	require.NoError(t, err)
	c := d.s3(static(key)) // nobody gets a new one once the SystemBucket is on its way out
	upload, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: aws.String("in parts")})
	require.NoError(t, err)
	sb := deleteBucket(t, "inflight")
	// From the first refusal on there is no other answer, whether the objects are gone yet or not.
	require.NoError(t, site.Await(ctx, stage.Wish{What: "keys in flight to be refused", Limit: shortLimit, Look: func(ctx context.Context) (bool, string, error) {
		_, err := get(ctx, c, bucket, "object-299")
		return code(err) == "NoSuchBucket", code(err), nil
	}}))
	for what, err := range map[string]error{
		"read":  func() error { _, err := get(ctx, c, bucket, "object-0"); return err }(),
		"write": put(ctx, c, bucket, "new", []byte("content")),
		"list":  func() error { _, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket}); return err }(),
		"part": func() error {
			_, err := c.UploadPart(ctx, &s3.UploadPartInput{
				Bucket: &bucket, Key: aws.String("in parts"), UploadId: upload.UploadId, PartNumber: aws.Int32(1), Body: strings.NewReader("part"),
			})
			return err
		}(),
	} {
		require.Equal(t, "NoSuchBucket", code(err), what)
	}
	awaitGone(t, sb)
	again := newBucket(t, "inflight", "100Mi")
	t.Cleanup(func() { deleteBucket(t, "inflight") })
	require.NotEqual(t, bucket, again)
	// On a busy machine the key of half a minute may have ended by now.
	require.Contains(t, []string{"AccessDenied", "ExpiredToken"}, code(put(ctx, c, again, "new", []byte("content"))), "an old key does not open it")
	listed, err := d.s3(d.of("inflight", "inflight", "")).ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &again})
	require.NoError(t, err)
	require.Empty(t, listed.Contents, "it shows nothing of the old one")
}

// putsRight changes a bucket in Garage itself, as somebody with the admin token could.
func (s *leaving) putsRight(t *testing.T) {
	ctx := t.Context()
	api, err := admin(ctx)
	require.NoError(t, err)
	id, own := bucketID(t, mainBucket), bucketName(t, mainBucket)
	before, err := api.GetBucketByID(ctx, id)
	require.NoError(t, err)
	require.Len(t, before.Keys, 1)
	_, err = api.SetBucketQuotas(ctx, id, garage.Quotas{})
	require.NoError(t, err)
	_, err = api.DenyBucketKey(ctx, id, before.Keys[0].AccessKeyID, garage.Permissions{Write: true})
	require.NoError(t, err)
	_, err = api.AddBucketAlias(ctx, id, "somebody-elses-name")
	require.NoError(t, err)
	_, err = api.RemoveBucketAlias(ctx, id, own)
	require.NoError(t, err)
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the bucket to be put right", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		found, err := api.GetBucketByID(ctx, id)
		right := found.Quotas.Equal(before.Quotas) && fmt.Sprint(found.GlobalAliases) == fmt.Sprint(before.GlobalAliases) &&
			fmt.Sprint(found.Keys) == fmt.Sprint(before.Keys)
		return right, fmt.Sprintf("%v", found.GlobalAliases), err
	}}))
	s.readsBack(t)
}

func (s *leaving) tellsVanished(t *testing.T) {
	ctx := t.Context()
	newBucket(t, "vanishing", "10Mi")
	api, err := admin(ctx)
	require.NoError(t, err)
	id := bucketID(t, "vanishing")
	require.NoError(t, api.DeleteBucket(ctx, id))
	awaitStatus(t, "vanishing", "that its bucket is gone", func(sb *v1alpha1.SystemBucket, ready metav1.Condition) bool {
		return ready.Reason == v1alpha1.ReasonBackendError && strings.Contains(ready.Message, "is gone from Garage") && sb.Status.BucketID == id
	})
	awaitGone(t, deleteBucket(t, "vanishing"))
	newBucket(t, "vanishing", "10Mi")
	awaitGone(t, deleteBucket(t, "vanishing"))
}

// waitsForStore deletes a bucket while no replica of Garage runs: it waits, says why and does not try in vain.
func (s *leaving) waitsForStore(t *testing.T) {
	ctx := t.Context()
	s.filled(t, "patient", 50)
	awayPod(t)
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the module to notice", Limit: storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		c, err := site.Condition(ctx, storageReady)
		return c.Status == "False", c.String(), err
	}}))
	sb := deleteBucket(t, "patient")
	awaitStatus(t, "patient", "what it waits for", func(_ *v1alpha1.SystemBucket, ready metav1.Condition) bool {
		// The store's last word on it: the Pods are there, and no node takes them.
		return ready.Reason == v1alpha1.ReasonDeleting && strings.Contains(ready.Message, "when the store is ready again") &&
			strings.Contains(ready.Message, "has no node")
	})
	failed, err := events(ctx, sb.Name)
	require.NoError(t, err)
	require.NoError(t, comesToRest(ctx, sb), "nothing is tried while the store is away")
	now, err := events(ctx, sb.Name)
	require.NoError(t, err)
	require.Equal(t, failed, now)
	require.NoError(t, cordon(ctx, false))
	awaitGone(t, sb)
}

// comesToRest waits until nothing was written to the SystemBucket for longer than it takes to try again. The store's
// words on its replicas may still change a few times at first.
func comesToRest(ctx context.Context, sb *v1alpha1.SystemBucket) error {
	const rest = 15 * time.Second
	since := time.Now()
	return site.Await(ctx, stage.Wish{What: "SystemBucket " + sb.Name + " to be left alone", Limit: shortLimit, Look: func(ctx context.Context) (bool, string, error) {
		version := sb.ResourceVersion
		if err := site.Admin.Get(ctx, client.ObjectKeyFromObject(sb), sb); err != nil {
			return false, "", fmt.Errorf("read the SystemBucket: %w", err)
		}
		if sb.ResourceVersion != version {
			since = time.Now()
		}
		return time.Since(since) >= rest, "", nil
	}})
}

// events counts what was told about the SystemBucket.
func events(ctx context.Context, name string) (int32, error) {
	found := &corev1.EventList{}
	if err := site.Admin.List(ctx, found, client.InNamespace(namespace), client.MatchingFields{"involvedObject.name": name}); err != nil {
		return 0, fmt.Errorf("list events: %w", err)
	}
	count := int32(0)
	for i := range found.Items {
		count += max(found.Items[i].Count, 1)
	}
	return count, nil
}
