package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhouse/system-s3/images/controller/internal/bucket"
	"github.com/deckhouse/system-s3/images/controller/internal/estate"
	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

// awayStage is a module that has come back and found a list of buckets that were let go.
type awayStage struct {
	*stage

	book     *estate.Book
	executor *bucket.Executor
	now      time.Time
}

// leftAlone makes a bucket with an object, lets its SystemBucket go as leaving does, and writes it down.
func leftAlone(t *testing.T, cluster *garagetest.Cluster) *awayStage {
	t.Helper()
	s := &awayStage{stage: newStage(t).on(cluster), now: time.Now()}
	s.pass()
	s.put(cluster, "object", 10)
	s.book = &estate.Book{Reader: s.client, Writer: s.client}
	s.executor = &bucket.Executor{
		Reader: s.client, Book: s.book, Board: s.board, Remover: s.reconciler.Remover, Now: func() time.Time { return s.now },
	}
	sb := s.get()
	sb.Finalizers = nil
	require.NoError(t, s.client.Update(t.Context(), sb))
	require.NoError(t, s.book.Put(t.Context(), []estate.Entry{{
		UID: sb.UID, Namespace: sb.Namespace, Name: sb.Name, Bucket: sb.Status.BucketID, Store: sb.Status.StoreID,
	}}))
	return s
}

func (s *awayStage) delete() string {
	s.t.Helper()
	sb := s.get()
	require.NoError(s.t, s.client.Delete(s.t.Context(), sb))
	require.True(s.t, s.gone())
	return sb.Status.BucketID
}

// passes lets so many passes go by, each a grace later.
func (s *awayStage) passes(count int) {
	s.t.Helper()
	for range count {
		require.NoError(s.t, s.executor.Pass(s.t.Context()))
		s.now = s.now.Add(estate.Grace)
	}
}

func (s *awayStage) written() int {
	s.t.Helper()
	entries, err := s.book.Read(s.t.Context())
	require.NoError(s.t, err)
	return len(entries)
}

func exists(t *testing.T, cluster *garagetest.Cluster, id string) bool {
	t.Helper()
	_, err := cluster.Client().GetBucketByID(t.Context(), id)
	if !garage.IsAbsent(err) {
		require.NoError(t, err)
	}
	return err == nil
}

func TestDeletedWhileAway(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := leftAlone(t, cluster)
	id := s.delete()
	s.passes(1)
	assert.True(t, exists(t, cluster, id), "seen to be gone once is not enough")
	s.passes(1)
	assert.False(t, exists(t, cluster, id), "A4: the bucket and every object in it")
	assert.Zero(t, s.written())
	s.passes(2)
}

func TestStillThereAfterTheReturn(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := leftAlone(t, cluster)
	s.passes(3)
	assert.Equal(t, 1, s.written(), "it may be deleted before our finalizer is back")
	s.pass()
	s.passes(3)
	assert.Zero(t, s.written(), "from now on the finalizer is enough")
	assert.True(t, exists(t, cluster, s.get().Status.BucketID))
}

func TestNothingIsDeletedWithoutProof(t *testing.T) {
	t.Parallel()
	errSilence := errors.New("no answer")
	cases := map[string]struct {
		reason string
		spoil  func(s *awayStage, cluster *garagetest.Cluster, id string)
	}{
		"SystemBuckets cannot be listed": {"an unreadable list is not an empty one", func(s *awayStage, _ *garagetest.Cluster, _ string) {
			s.executor.Reader = interceptor.NewClient(s.client, interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
					return errSilence
				},
			})
		}},
		"the list comes in pieces": {"who is in the next piece is not gone", func(s *awayStage, _ *garagetest.Cluster, _ string) {
			s.executor.Reader = interceptor.NewClient(s.client, interceptor.Funcs{
				List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
					err := api.List(ctx, list, o...)
					list.SetContinue("more")
					return err
				},
			})
		}},
		"it was not written down": {"a cluster restored from a backup knows neither it nor its SystemBucket", func(s *awayStage, _ *garagetest.Cluster, _ string) {
			entries, err := s.book.Read(s.t.Context())
			require.NoError(s.t, err)
			require.NoError(s.t, s.book.Remove(s.t.Context(), []estate.Entry{entries[types.UID(uid)]}))
		}},
		"somebody gave it a name": {"whose it is now is not known", func(s *awayStage, cluster *garagetest.Cluster, id string) {
			_, err := cluster.Client().AddBucketAlias(s.t.Context(), id, "rescued-"+id[:20])
			require.NoError(s.t, err)
		}},
		"it was written down in another store": {"an id of another store proves nothing here", func(s *awayStage, _ *garagetest.Cluster, id string) {
			require.NoError(s.t, s.book.Put(s.t.Context(), []estate.Entry{{UID: uid, Namespace: namespace, Name: name, Bucket: id, Store: "other"}}))
		}},
		"another SystemBucket has it": {"a restored one serves the old bucket", func(s *awayStage, _ *garagetest.Cluster, id string) {
			heir := &v1alpha1.SystemBucket{}
			heir.Namespace, heir.Name, heir.UID = namespace, "heir", "heir"
			heir.Status.BucketID = id
			require.NoError(s.t, s.client.Create(s.t.Context(), heir))
			heir.Status.BucketID = id
			require.NoError(s.t, s.client.Status().Update(s.t.Context(), heir))
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := garagetest.Start(t, 1)
			s := leftAlone(t, cluster)
			id := s.delete()
			c.spoil(s, cluster, id)
			for range 4 {
				_ = s.executor.Pass(t.Context()) // whether it is an error is not the point
				s.now = s.now.Add(estate.Grace)
			}
			assert.True(t, exists(t, cluster, id), c.reason)
		})
	}
}

// A list of many objects is deleted in several slices, and a pass that is cut off is gone on with.
func TestDeletedWhileAwayWithManyObjects(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	s := leftAlone(t, cluster)
	for n := range 900 {
		_, err := fixture.Connection(cluster).S3.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: aws.String(names.Bucket(namespace, name, uid)), Key: aws.String(fmt.Sprintf("%04d", n)),
		})
		require.NoError(t, err)
	}
	id := s.delete()
	s.passes(1)
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, s.executor.Pass(cut))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		s.passes(1)
		assert.False(c, exists(t, cluster, id))
	}, waitFor, tick)
	assert.Zero(t, s.written())
}
