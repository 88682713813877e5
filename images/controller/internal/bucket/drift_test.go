package bucket_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

// Whatever somebody does to a bucket behind our back, the next pass puts it right.
func TestDriftIsPutRight(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := newStage(t).on(cluster)
	s.pass()
	admin, id, own := cluster.Client(), s.get().Status.BucketID, s.get().Status.BucketName
	stranger := garage.Key{AccessKeyID: "stranger-key", SecretAccessKey: strings.Repeat("s", 64), Name: "stranger"}
	require.NoError(t, admin.ImportKey(t.Context(), stranger))
	cases := []struct {
		name, reason string
		spoil        func() error
	}{
		{"quotas taken off", "they bound the volumes", func() error {
			_, err := admin.SetBucketQuotas(t.Context(), id, garage.Quotas{})
			return err
		}},
		{"write taken from the internal key", "every consumer comes by it", func() error {
			_, err := admin.DenyBucketKey(t.Context(), id, cluster.KeyID, garage.Permissions{Write: true})
			return err
		}},
		{"the internal key made owner", "it could delete the bucket by S3", func() error {
			_, err := admin.AllowBucketKey(t.Context(), id, cluster.KeyID, garage.Permissions{Owner: true})
			return err
		}},
		{"another key granted", "B4: it would live for ever", func() error {
			_, err := admin.AllowBucketKey(t.Context(), id, stranger.AccessKeyID, garage.Permissions{Read: true, Write: true, Owner: true})
			return err
		}},
		{"another name given", "no key is for it, and it hides what the bucket is", func() error {
			_, err := admin.AddBucketAlias(t.Context(), id, "another-name")
			return err
		}},
		{"its name taken", "nobody finds it any more", func() error {
			if _, err := admin.AddBucketAlias(t.Context(), id, "another-name"); err != nil {
				return err
			}
			_, err := admin.RemoveBucketAlias(t.Context(), id, own)
			return err
		}},
	}
	for _, c := range cases {
		require.NoError(t, c.spoil(), c.name)
		s.pass()
		found, err := admin.GetBucketByID(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, []string{own}, found.GlobalAliases, "%s: %s", c.name, c.reason)
		assert.Equal(t, garage.Permissions{Read: true, Write: true}, found.Granted(cluster.KeyID), "%s: %s", c.name, c.reason)
		assert.Equal(t, garage.Permissions{}, found.Granted(stranger.AccessKeyID), "%s: %s", c.name, c.reason)
		assert.True(t, found.Quotas.Equal(garage.Quotas{MaxSize: aws.Int64(10 << 20), MaxObjects: aws.Int64(1000)}), "%s: %s", c.name, c.reason)
		assert.Equal(t, metav1.ConditionTrue, s.ready().Status, c.name)
	}
}

// A name that somebody gave to another bucket is told: that bucket may hold what was written meanwhile.
func TestStolenNameIsTold(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := newStage(t).on(cluster)
	s.pass()
	s.put(cluster, "object", 10)
	admin, id, own := cluster.Client(), s.get().Status.BucketID, s.get().Status.BucketName
	_, err := admin.AddBucketAlias(t.Context(), id, "another-name")
	require.NoError(t, err)
	_, err = admin.RemoveBucketAlias(t.Context(), id, own)
	require.NoError(t, err)
	thief, err := admin.CreateBucket(t.Context())
	require.NoError(t, err)
	_, err = admin.AddBucketAlias(t.Context(), thief.ID, own)
	require.NoError(t, err)
	s.pass()
	assert.Equal(t, "BackendError", s.ready().Reason)
	assert.Contains(t, s.ready().Message, own)
	assert.Equal(t, id, s.get().Status.BucketID)
	found, err := admin.GetBucketByID(t.Context(), id)
	require.NoError(t, err)
	assert.EqualValues(t, 1, found.Objects, "nothing is lost")
	require.NoError(t, admin.DeleteBucket(t.Context(), thief.ID))
	s.pass()
	assert.Equal(t, metav1.ConditionTrue, s.ready().Status, "and all is well when it is given back")
}

// The quotas follow the spec, up and down, also below what is used.
func TestQuotasFollowTheSpec(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := newStage(t).on(cluster)
	s.pass()
	s.put(cluster, "object", 5<<20)
	cases := []struct {
		size    string
		objects *int64
		want    string
	}{
		{"100Mi", nil, "WithinQuota"},
		{"6Mi", nil, "NearQuota"},
		{"1Mi", nil, "QuotaReached"},
		{"1Gi", aws.Int64(1), "QuotaReached"},
		{"1Gi", aws.Int64(5), "WithinQuota"},
		{"1Gi", nil, "WithinQuota"},
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		s.pass()
		assert.EqualValues(c, 1, *s.get().Status.Objects, "Garage counts behind the writes")
	}, waitFor, tick)
	for n, c := range cases {
		sb := s.get()
		sb.Spec.Size, sb.Spec.MaxObjects, sb.Generation = resource.MustParse(c.size), c.objects, int64(n+2)
		require.NoError(t, s.client.Update(t.Context(), sb))
		s.pass()
		found, err := cluster.Client().GetBucketByID(t.Context(), sb.Status.BucketID)
		require.NoError(t, err)
		want := resource.MustParse(c.size)
		assert.True(t, found.Quotas.Equal(garage.Quotas{MaxSize: aws.Int64(want.Value()), MaxObjects: c.objects}), "%s %+v", c.size, found.Quotas)
		condition := meta.FindStatusCondition(s.get().Status.Conditions, v1alpha1.ConditionQuotaAvailable)
		assert.Equal(t, c.want, condition.Reason, c.size)
		told := s.get().Status.Quota
		assert.Zero(t, told.Size.Cmp(want), "the limit is told")
		assert.Equal(t, c.objects, told.MaxObjects)
	}
}

// Before the first object is deleted the name is gone: a key in flight cannot read half of a bucket.
func TestDeletionTakesTheNameFirst(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := newStage(t).on(cluster)
	s.pass()
	for n := range 3 {
		s.put(cluster, fmt.Sprint(n), 10)
	}
	sb := s.get()
	require.NoError(t, s.client.Delete(t.Context(), sb))
	// Somebody gave it a name of his own, under which it could not be emptied and would come back for ever.
	_, err := cluster.Client().AddBucketAlias(t.Context(), sb.Status.BucketID, "another-name")
	require.NoError(t, err)
	consumer := fixture.Connection(cluster).S3
	s.pass()
	assert.True(t, s.gone())
	for _, name := range []string{sb.Status.BucketName, "another-name", names.RemovedBucket(sb.Status.BucketID)} {
		_, err = consumer.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(name)})
		var answer smithy.APIError
		require.ErrorAs(t, err, &answer)
		assert.Equal(t, "NoSuchBucket", answer.ErrorCode())
	}
}

// A deletion that was begun by a process that is gone is ended by the next.
func TestDeletionGoesOn(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := newStage(t).on(cluster)
	s.pass()
	for n := range 300 {
		s.put(cluster, fmt.Sprintf("%03d", n), 10)
	}
	sb := s.get()
	admin, removed := cluster.Client(), names.RemovedBucket(sb.Status.BucketID)
	// So far came the process before: the name is taken, some objects are gone.
	_, err := admin.AddBucketAlias(t.Context(), sb.Status.BucketID, removed)
	require.NoError(t, err)
	_, err = admin.RemoveBucketAlias(t.Context(), sb.Status.BucketID, sb.Status.BucketName)
	require.NoError(t, err)
	for n := range 100 {
		_, err := fixture.Connection(cluster).S3.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &removed, Key: aws.String(fmt.Sprintf("%03d", n))})
		require.NoError(t, err)
	}
	require.NoError(t, s.client.Delete(t.Context(), sb))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		if !s.gone() {
			s.pass()
		}
		assert.True(c, s.gone())
	}, waitFor, tick)
	_, err = admin.GetBucketByID(t.Context(), sb.Status.BucketID)
	assert.True(t, garage.IsAbsent(err))
}
