package plane_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/plan"
)

// TestAReplicaRestartedTooEarly: on the way from three to one, the very replica that is to stay is restarted by somebody
// else before the others handed over, and the others go on taking writes. The three are put together again.
func TestAReplicaRestartedTooEarly(t *testing.T) {
	t.Parallel()
	l := newLanding(t, 3)
	l.want(true)
	l.settle("three", l.rests(3))
	l.bucket(0)
	objects := goods(3)
	l.put(0, objects)

	l.want(false)
	l.settle("the change begins", func(p plan.Plan) bool { return p.Planes[0].ReplicationFactor == 1 })
	survivor := l.facts.Survivor
	require.NoError(t, l.client.Delete(t.Context(), fixture.Pod(survivor)))
	l.cluster.Nodes[survivor].Kill()
	maps.Copy(objects, goods(4))
	l.put((survivor+1)%3, goods(4))
	l.settle("it is called back", func(p plan.Plan) bool { return p.Planes[0].ReplicationFactor == 3 })
	require.Equal(t, 2, l.state().Planes[0].Spoiled)

	l.want(true)
	l.settle("three again", l.rests(3))
	for ordinal := range 3 {
		l.check(ordinal, objects)
	}
}

// TestTheOneThatStaysLacksABlock: it is seen before the volumes of the others are deleted, and what it lacks comes back
// with them.
func TestTheOneThatStaysLacksABlock(t *testing.T) {
	t.Parallel()
	l := newLanding(t, 3)
	l.want(true)
	l.settle("three", l.rests(3))
	l.bucket(0)
	objects := goods(5)
	l.put(0, objects)
	l.want(false)
	l.settle("the change is done", func(plan.Plan) bool { s := l.state().Planes[0]; return s.Opened == 2 && s.Epoch == 2 })
	loseBlock(t, l.cluster, l.facts.Survivor)

	l.settle("the loss is seen", func(p plan.Plan) bool {
		require.Equal(t, 3, p.Planes[0].Replicas, "the others are kept")
		told, _ := l.condition("MigrationReady")["message"].(string)
		return p.Migration.Reason == plan.ReasonVerifying && strings.Contains(told, "has blocks that could not be copied")
	})
	l.want(true)
	l.settle("three again", l.rests(3))
	for ordinal := range 3 {
		l.check(ordinal, objects)
		require.Equal(t, l.cluster.Blocks(t, 0), l.cluster.Blocks(t, ordinal))
	}
}

// loseBlock removes one block from a node's disk.
func loseBlock(t *testing.T, cluster *garagetest.Cluster, ordinal int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(cluster.Nodes[ordinal].Dir, "data", "??", "??", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	require.NoError(t, os.Remove(files[0]))
}
