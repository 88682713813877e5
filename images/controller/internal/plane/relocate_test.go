package plane_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

const (
	usual    = "1 workers, tranquility 2"
	recovery = "4 workers, tranquility 0"
)

// relabel changes a node and its status.
func (w *town) relabel(name string, change func(*corev1.Node)) {
	w.t.Helper()
	for _, write := range []func(context.Context, client.Object) error{
		func(ctx context.Context, o client.Object) error { return w.client.Update(ctx, o) },
		func(ctx context.Context, o client.Object) error { return w.client.Status().Update(ctx, o) },
	} {
		node := &corev1.Node{}
		require.NoError(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, node))
		change(node)
		require.NoError(w.t, write(w.t.Context(), node))
	}
}

// TestATierThatChanges: two replicas of three leave their nodes, one after the other, the second one only after the first
// has everything. In between the controller is killed after it deleted the claim.
func TestATierThatChanges(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.write(0, 20)
	w.until("Ready")
	w.passUntil("all replicas to be proven", w.proven)
	assert.Equal(t, "The store serves all requests.", w.message(), "a new store is not behind anything")
	assert.Equal(t, "True Placed: Fine.", w.says("PlacementReady"))

	for _, name := range []string{"node-1", "node-2"} {
		w.relabel(name, func(n *corev1.Node) { delete(n.Labels, plan.MasterNodeLabel) })
	}
	w.pass()
	assert.Contains(t, w.says("PlacementReady"), "False Relocating: garage-a-2 gets a new volume on node-3 or node-4 and is filled from the other replicas, because node-2 does not carry the label node-role.kubernetes.io/control-plane; before that: ")
	assert.Equal(t, "garage-a-2", w.state().Planes[0].Moving)
	w.passUntil("garage-a-2 to leave", func() bool { return !w.exists(fixture.Pod(2)) })
	assert.True(t, w.claimGoes(2))
	assert.False(t, w.claimGoes(1))
	whole := w.everything()
	w.untilSays("PlacementReady", "garage-a-2 gets a new volume: its Pod ends, and its claim data-garage-a-2 with it.")

	w.kubernetes(2, "node-3")
	told := map[string]bool{}
	w.passUntil("garage-a-1 to be next", func() bool {
		if !w.claimGoes(1) {
			told[w.says("StorageReady")] = true
			return false
		}
		assert.Zero(t, w.lacks(2, whole), "the gate is open and a block is missing")
		return true
	})
	assert.False(t, w.exists(fixture.Pod(1)))
	assert.LessOrEqual(t, len(told), 40, "it does not change all the time: %v", told)
	filled := false
	for text := range told {
		filled = filled || assertFilling(text)
	}
	assert.True(t, filled, "%v", told)
	assert.Equal(t, recovery, w.speed(0))

	w.kubernetes(1, "node-4")
	w.passUntil("all to be proven again", w.proven)
	assert.Zero(t, w.lacks(1, whole))
	w.pass()
	assert.Equal(t, "True Placed: Fine.", w.says("PlacementReady"))
	assert.Equal(t, "The store serves all requests.", w.message())
	assert.Nil(t, w.state().Planes[0].Replicas[1].Fill)
	for i := range 3 {
		assert.Equal(t, usual, w.speed(i), "put back")
	}
}

func assertFilling(text string) bool {
	const want = "True Degraded: garage-a-2 started with an empty volume and is filled from the other replicas, "
	return len(text) > len(want) && text[:len(want)] == want
}

// TestAClaimThatIsDeleted: a controller was killed between the claim and the Pod, or a person deleted the claim. Whatever
// ends the Pod ends the volume, so that it waits for the gate.
func TestAClaimThatIsDeleted(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.write(0, 10)
	w.until("Ready")
	w.passUntil("all replicas to be proven", w.proven)
	w.cluster.Nodes[1].Kill()
	w.write(0, 10) // the third lacks nothing, the second does

	claim := &corev1.PersistentVolumeClaim{}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: names.GarageClaim("a", 0)}, claim))
	require.NoError(t, w.client.Delete(t.Context(), claim))
	w.untilSays("PlacementReady", "garage-a-0 is to move, because its claim data-garage-a-0 is being deleted, and waits until garage-a-1 is up")
	assert.True(t, w.exists(fixture.Pod(0)))

	whole := w.everything()
	w.cluster.Nodes[1].Start(t)
	w.passUntil("garage-a-0 to be restarted", func() bool { return !w.exists(fixture.Pod(0)) })
	assert.Zero(t, w.lacks(1, whole))
	assert.Zero(t, w.lacks(2, whole))
}

// TestANodeThatIsLost: the replica cannot be asked, so the other two have to hold everything without it, though one of
// them was away when some of it was written, and though clients go on deleting.
func TestANodeThatIsLost(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.write(0, 10)
	w.until("Ready")
	w.passUntil("all replicas to be proven", w.proven)
	w.cluster.Nodes[2].Kill()
	w.write(0, 20)
	whole := w.cluster.Nodes[0].Blocks(t)
	w.cluster.Nodes[2].Start(t)
	w.until("Ready")
	w.cluster.Nodes[1].Kill()
	require.NotZero(t, w.lacks(2, whole), "it has not copied them yet")

	w.relabel("node-1", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
	w.untilSays("PlacementReady", "False ReplicaPinned: garage-a-1 waits for node-1, to which its volume is tied and which is not ready. "+
		"Bring it back; if it is lost for good, delete it (kubectl delete node node-1), and the replica is made anew on another node.")
	require.NoError(t, w.client.Delete(t.Context(), node("node-1")))
	w.pass()
	assert.Contains(t, w.says("PlacementReady"), "garage-a-1 gets a new volume on node-3 or node-4 and is filled from the other replicas, because its volume was tied to node-1, which does not exist any more; before that: ")
	w.passUntil("garage-a-1 to be made anew", func() bool {
		if !w.claimGoes(1) {
			return false
		}
		assert.Zero(t, w.lacks(0, whole))
		assert.Zero(t, w.lacks(2, whole), "the gate is open and a block is missing")
		return true
	})
	w.kubernetes(1, "node-3")
	w.passUntil("all to be proven again", w.proven)
	assert.Zero(t, w.lacks(1, whole))
}

// TestADamagedDatabase: real Garage, whose database is spoilt, ends at its start; the replica is made anew from the
// others.
func TestADamagedDatabase(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.write(0, 10)
	w.until("Ready")
	w.passUntil("all replicas to be proven", w.proven)
	w.cluster.Nodes[1].Garble(t)
	w.cluster.Nodes[1].Start(t)
	crashed := failing(1, "run-1")
	crashed.Spec.NodeName = "node-1"
	delete(crashed.Labels, "controller-revision-hash")
	crashed.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, ContainerID: "gone"}
	require.Eventually(t, func() bool { return w.cluster.Nodes[1].Ended() }, time.Minute, 50*time.Millisecond)
	w.replace(crashed)
	w.untilSays("PlacementReady", "garage-a-1 gets a new volume on node-1, node-3 or node-4 and is filled from the other replicas, because its Garage cannot read its database (MDB_INVALID); before that: ")
	w.passUntil("garage-a-1 to be made anew", func() bool { return w.claimGoes(1) })
	assert.False(t, w.exists(fixture.Pod(1)))
	w.kubernetes(1, "node-1")
	w.passUntil("all to be proven again", w.proven)
}

// TestADiskThatIsReplaced: a replica comes back empty as itself. Nothing moves; that it is being filled is told, and
// until it is nobody else's volume is given up without proof.
func TestADiskThatIsReplaced(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.write(0, 10)
	w.until("Ready")
	w.passUntil("all replicas to be proven", w.proven)
	w.cluster.Nodes[2].Wipe(t)
	w.mu.Lock()
	w.contents[2] = "another disk"
	w.mu.Unlock()
	w.cluster.Nodes[2].Start(t)
	w.replace(w.pod(2, "node-2"))
	w.until("Degraded", "garage-a-2 started with an empty volume and is filled from the other replicas")
	w.cluster.Nodes[1].Kill()
	require.NoError(t, w.client.Delete(t.Context(), node("node-1")))
	w.untilSays("PlacementReady", "False ReplicaPinned: garage-a-1 is not made anew, although its volume was tied to node-1, which does not exist any more: "+
		"garage-a-2 got an empty volume after all replicas were last proven to hold everything")
	assert.False(t, w.claimGoes(1))
}

// TestWhatWasDeletedMeanwhile: a replica that was away does not know of deletions, and is asked for listings, too.
func TestWhatWasDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.write(0, 20)
	w.until("Ready")
	w.passUntil("all replicas to be proven", w.proven)
	w.cluster.Nodes[2].Kill()
	w.empty(0)
	w.cluster.Nodes[2].Start(t)
	w.replace(w.pod(2, "node-2"))
	w.until("Ready")
	// Garage itself compares every ten minutes.
	require.Eventually(t, func() bool { return len(w.list(2)) == 0 }, 90*time.Second, 500*time.Millisecond)
	assert.Empty(t, w.list(0))
}

func TestReasonsAreThePlanners(t *testing.T) {
	t.Parallel()
	assert.Equal(t, plan.ReasonRelocating, layout.ReasonRelocating)
	assert.Equal(t, plan.ReasonReplicaPinned, layout.ReasonReplicaPinned)
	assert.Equal(t, plan.ReasonPlacementBlocked, layout.ReasonPlacementBlocked)
}
