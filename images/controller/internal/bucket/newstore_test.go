package bucket_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/plan"
)

// onStore puts the store with a Garage cluster on the board, under the name that the controller knows it by.
func (s *stage) onStore(cluster *garagetest.Cluster, id string) {
	connection := fixture.Connection(cluster)
	connection.Store = id
	s.board.Post(backend.Store{
		Exists: true, Ready: plan.Verdict{OK: true, Reason: plan.ReasonReady, Message: "Fine."}, Connection: connection,
	})
}

func TestAnotherStore(t *testing.T) {
	t.Parallel()
	first, second := garagetest.Start(t, 1), garagetest.Start(t, 1)
	s := newStage(t)
	s.onStore(first, "first")
	s.pass()
	before := s.get().Status
	require.Equal(t, "first", before.StoreID)
	require.Nil(t, meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionDataLost))

	s.onStore(second, "second")
	s.pass()
	after := s.get().Status
	assert.Equal(t, "Ready", s.ready().Reason, "it serves again")
	assert.Equal(t, "second", after.StoreID)
	assert.NotEqual(t, before.BucketID, after.BucketID)
	assert.Equal(t, before.BucketName, after.BucketName, "what clients know stays")
	lost := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionDataLost)
	require.NotNil(t, lost, "nobody may take it for the old one")
	assert.Equal(t, v1alpha1.ReasonStoreMadeAnew, lost.Reason)
	assert.Contains(t, lost.Message, "The store first, which had this bucket, was deleted")
	told := false
	for len(s.events.Events) > 0 {
		told = told || assert.ObjectsAreEqual("Warning StoreMadeAnew "+lost.Message, <-s.events.Events)
	}
	assert.True(t, told, "an event tells it too")
	s.pass()
	assert.NotNil(t, meta.FindStatusCondition(s.get().Status.Conditions, v1alpha1.ConditionDataLost), "it stays told")

	require.NoError(t, second.Client().DeleteBucket(t.Context(), after.BucketID))
	s.pass()
	assert.Equal(t, "BackendError", s.ready().Reason, "in the same store a bucket that vanished is never made again")
}

func TestMovedToAnotherStore(t *testing.T) {
	t.Parallel()
	first, second := garagetest.Start(t, 1), garagetest.Start(t, 1)
	s := newStage(t)
	s.onStore(first, "first")
	s.pass()
	moved := second.CreateBucket(t, s.get().Status.BucketName)
	s.onStore(second, "second")
	s.pass()
	assert.Equal(t, moved, s.get().Status.BucketID)
	assert.Nil(t, meta.FindStatusCondition(s.get().Status.Conditions, v1alpha1.ConditionDataLost), "the name is in the new store: so are the objects")
}

func TestVanishedBeforeStoresHadNames(t *testing.T) {
	t.Parallel()
	first, second := garagetest.Start(t, 1), garagetest.Start(t, 1)
	s := newStage(t)
	s.onStore(first, "first")
	s.pass()
	sb := s.get()
	sb.Status.StoreID = ""
	require.NoError(t, s.client.Status().Update(t.Context(), sb))
	s.onStore(second, "second")
	s.pass()
	assert.Equal(t, "BackendError", s.ready().Reason, "without proof that the store is another one nothing is hidden")
}
