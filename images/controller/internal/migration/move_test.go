package migration_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/plan"
)

const longestWait = 10 * time.Second

// fill writes objects that nobody changes any more.
func (w *town) fill(bucket string, count int) {
	w.t.Helper()
	client := w.s3(bucket)
	for i := range count {
		_, err := client.PutObject(w.t.Context(), &s3.PutObjectInput{
			Bucket: &bucket, Key: aws.String(fmt.Sprintf("steady/%d", i)), Body: bytes.NewReader([]byte(strings.Repeat("x", i*37))),
		})
		require.NoError(w.t, err)
	}
}

func (w *town) countOf(id, bucket string) int {
	w.t.Helper()
	p := w.planes[id].cluster
	client := s3Of(p.S3URL(), p.KeyID, p.KeySecret)
	out, err := client.ListObjectsV2(w.t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: aws.String("steady/")})
	require.NoError(w.t, err)
	return len(out.Contents)
}

// The store moves while clients write, and none of them notices.
func TestTheStoreMoves(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d replicas", nodes), func(t *testing.T) {
			w := newTown(t, nodes)
			w.fill(townBucket, 200)
			clients := w.witness(townBucket, 4)
			w.untilMoved()
			assert.Equal(t, "Preparing Copying Verifying Holding Fencing Switched Retiring ", w.phases())
			clients.testify(t, longestWait)
			assert.Equal(t, 200, w.countOf("b", townBucket))
		})
	}
}

// A leader that ends right after a phase was persisted, or right before the next one is, leaves nothing that the next
// leader cannot go on from.
func TestTheLeaderChangesInEachPhase(t *testing.T) {
	w := newTown(t, 1)
	w.fill(townBucket, 50)
	clients := w.witness(townBucket, 2)
	restarted := map[plan.Phase]int{}
	w.until("the store moves", func() bool {
		if phase := w.phase(); restarted[phase] < 1 {
			restarted[phase]++
			w.restart()
		}
		return w.state() == nil && !w.anythingOf("a")
	})
	for _, phase := range []plan.Phase{plan.PhaseCopying, plan.PhaseVerifying, plan.PhaseHolding, plan.PhaseFencing, plan.PhaseSwitched, plan.PhaseRetiring} {
		assert.Positive(t, restarted[phase], "the leader changes in %s", phase)
	}
	clients.testify(t, time.Minute)
	assert.Equal(t, 50, w.countOf("b", townBucket))
}

// A leader that has done everything for a phase and ends right before it is persisted.
func TestTheLeaderEndsBeforeEachPhase(t *testing.T) {
	w := newTown(t, 1)
	w.fill(townBucket, 50)
	clients := w.witness(townBucket, 2)
	w.crashes = map[plan.Phase]bool{}
	for _, phase := range []plan.Phase{plan.PhaseCopying, plan.PhaseVerifying, plan.PhaseHolding, plan.PhaseFencing, plan.PhaseSwitched, plan.PhaseRetiring} {
		w.crashes[phase] = true
	}
	w.until("the store moves", func() bool {
		if w.crashed {
			w.crashed = false
			w.restart()
		}
		return w.state() == nil && !w.anythingOf("a")
	})
	for phase, stands := range w.crashes {
		assert.False(t, stands, "the leader ended before %s", phase)
	}
	clients.testify(t, time.Minute)
	assert.Equal(t, 50, w.countOf("b", townBucket))
}

// Called back before the fence, the target goes and nothing else changes.
func TestCalledBack(t *testing.T) {
	w := newTown(t, 1)
	w.fill(townBucket, 50)
	clients := w.witness(townBucket, 2)
	w.untilPhase(plan.PhaseVerifying)
	w.aborted = true
	w.until("the target goes", func() bool { return w.state() == nil && !w.anythingOf("b") })
	require.True(t, w.anythingOf("a"))
	require.Equal(t, 1, w.claims("a"))
	clients.testify(t, longestWait)
	assert.Equal(t, 50, w.countOf("a", townBucket))
}

// A gateway of the source that is restarted has forgotten its journal: the pass begins anew.
func TestAGatewayIsRestarted(t *testing.T) {
	w := newTown(t, 1)
	w.fill(townBucket, 50)
	w.untilPhase(plan.PhaseVerifying)
	gateway := w.planes["a"].replicas[0]
	gateway.stop()
	gateway.start()
	w.fill(townBucket, 60) // what no journal tells
	w.until("the pass begins anew", func() bool { return w.phase() == plan.PhaseCopying })
	w.untilMoved()
	assert.Equal(t, 60, w.countOf("b", townBucket))
}

// Buckets that are made and deleted during the migration are made and deleted at the target.
func TestBucketsComeAndGo(t *testing.T) {
	w := newTown(t, 1)
	source, target := w.planes["a"].cluster, w.planes["b"].cluster
	goes := source.CreateBucket(t, "goes")
	w.untilPhase(plan.PhaseVerifying)
	_, err := target.Client().GetBucketByAlias(t.Context(), "goes")
	require.NoError(t, err)
	require.NoError(t, source.Client().DeleteBucket(t.Context(), goes))
	source.CreateBucket(t, "comes")
	w.fill("comes", 20)
	w.untilMoved()
	assert.Equal(t, 20, w.countOf("b", "comes"))
	_, err = target.Client().GetBucketByAlias(t.Context(), "goes")
	require.Error(t, err, "it is gone")
}
