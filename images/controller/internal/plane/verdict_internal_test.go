package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/plan"
)

// told is a story about the active plane.
type told struct{ outcome }

// healthy is a plane of so many replicas that serves.
func healthy(replicas int) told {
	o := outcome{KeyKnown: true, Step: layout.Step{Kind: layout.Steady}}
	o.Plane = plan.Plane{ID: "a", Role: plan.RoleActive, Replicas: replicas, ReplicationFactor: replicas, NodeLabel: plan.MasterNodeLabel, Epoch: 1}
	o.Previous = plan.PlaneState{ID: "a", Epoch: 1, LayoutVersion: 1, ReplicationFactor: replicas}
	o.Garage = &view{Up: map[string]bool{}, Health: garage.Health{Status: "healthy"}, Layout: layout.Layout{Version: 1}}
	for i := range replicas {
		id := string(rune('a' + i))
		o.Replicas = append(o.Replicas, replica{
			Ordinal: i, Pod: "garage-a-" + id, ID: id, Exists: true, Node: "node-" + id, IP: "10.0.0.1", Ready: true,
			Space: backend.Space{Total: 1000, Free: 500},
		})
		o.Garage.Up[id] = true
	}
	return told{o}
}

func (o told) health(status string) told { o.Garage.Health.Status = status; return o }

func (o told) down(ordinal int) told { delete(o.Garage.Up, o.Replicas[ordinal].ID); return o }

func (o told) pending(ordinal int) told {
	r := &o.Replicas[ordinal]
	r.Node, r.IP, r.Ready, r.Unschedulable = "", "", false, "no node fits. preemption: not helpful."
	return o.down(ordinal)
}

func (o told) free(ordinal int, free int64) told { o.Replicas[ordinal].Space.Free = free; return o }

func (o told) silent() told { o.Garage = nil; return o }

func (o told) fresh() told {
	o.Previous = plan.PlaneState{ID: "a"}
	if o.Garage != nil {
		o.Garage.Layout = layout.Layout{}
	}
	o.KeyKnown = false
	return o
}

func (o told) step(kind layout.Kind, message string) told {
	o.Step = layout.Step{Kind: kind, Message: message}
	return o
}

func (o told) problem(message string) told { o.Problem = message; return o }

func (o told) keyless() told { o.KeyKnown = false; return o }

func good() plan.Plan {
	fine := plan.Verdict{OK: true, Reason: "Fine", Message: "Fine."}
	return plan.Plan{Storage: fine, Placement: fine, Capacity: fine, Migration: fine}
}

func TestStorage(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		plane   told
		ok      bool
		want    string
		message string
	}{
		"serves":               {"the quiet case", healthy(3), true, "Ready", "serves all requests"},
		"one of three is down": {"two of three serve", healthy(3).down(1).health("degraded"), true, "Degraded", "2 of 3 replicas are up: garage-a-b on node node-b is not connected"},
		"one has no node":      {"its place is told", healthy(3).pending(2).health("degraded"), true, "Degraded", "garage-a-c has no node (no node fits)"},
		"two of three are down": {
			"no quorum", healthy(3).down(0).down(1).health("unavailable"), false, "QuorumLost",
			"1 of 3 replicas is up, at least 2 must be",
		},
		"nobody answers":       {"it had data", healthy(3).silent(), false, "QuorumLost", "No replica answers the controller"},
		"the only one is down": {"it had data", healthy(1).silent(), false, "QuorumLost", "No replica answers the controller"},
		"quorum is connecting": {
			"enough are up, they find each other", healthy(3).down(0).health("unavailable"), false, "Starting", "take over layout",
		},
		"nobody answers yet": {
			"a new store starts", healthy(3).fresh().silent().step(layout.Wait, "Waiting for all."), false, "Starting", "Waiting for all.",
		},
		"no place for a new store": {
			"the way out is told", healthy(3).fresh().pending(1).step(layout.Refuse, "Two of three."), false, "LayoutFailed",
			"Two of three. Ways out: give the label node-role.deckhouse.io/system-s3 to 3 nodes, add nodes with the label node-role.kubernetes.io/control-plane, or set highAvailability: false in ModuleConfig system-s3.",
		},
		"foreign node in the layout": {
			"no place is missing, so no way out about places", healthy(3).step(layout.Refuse, "A foreign node."), false, "LayoutFailed",
			"A foreign node.",
		},
		"staging":   {"a step on the way", healthy(1).fresh().step(layout.Stage, "Staging."), false, "Starting", "Staging."},
		"key":       {"buckets cannot be made yet", healthy(1).keyless(), false, "Starting", "layout and key"},
		"key fails": {"the problem is told", healthy(1).keyless().problem("Key."), false, "Starting", "Key."},
		"problem in passing": {
			"a store that serves is ready, whatever else went wrong", healthy(1).problem("x."), true, "Ready", "serves",
		},
		"no Secret": {"the reason lies outside of Garage", healthy(1).silent().problem("No Secret."), false, "Starting", "No Secret."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := storage(good(), &c.plane.outcome)
			assert.Equal(t, c.ok, got.OK, c.reason)
			assert.Equal(t, c.want, got.Reason, c.reason)
			assert.Contains(t, got.Message, c.message, c.reason)
		})
	}
}

func TestThePlanSpeaksFirst(t *testing.T) {
	t.Parallel()
	p := good()
	p.Storage = plan.Verdict{Reason: "NoStorageClass", Message: "Make one."}
	p.Placement = plan.Verdict{Reason: "ReplicaPinned", Message: "Pinned."}
	p.Capacity = plan.Verdict{Reason: "ExpansionNotAllowed", Message: "Not allowed."}
	o := healthy(3).pending(0).free(0, 1)
	assert.Equal(t, p.Storage, storage(p, &o.outcome))
	assert.Equal(t, p.Placement, placement(p, &o.outcome))
	assert.Equal(t, p.Capacity, capacity(p, &o.outcome))
	assert.Equal(t, "Starting", storage(good(), nil).Reason, "a plan without an active plane")
	assert.Equal(t, good().Capacity, capacity(good(), nil))
}

func TestPlacement(t *testing.T) {
	t.Parallel()
	o := healthy(3).pending(1).pending(2)
	got := placement(good(), &o.outcome)
	assert.Equal(t, "PlacementBlocked", got.Reason)
	assert.Contains(t, got.Message, "1 of 3 replicas has a node with the label node-role.kubernetes.io/control-plane, each its own; for the others the scheduler finds none: garage-a-b: no node fits; garage-a-c: no node fits. Ways out: ")
	assert.Contains(t, got.Message, "highAvailability: false")
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		free   int64
		want   string
	}{
		"enough":    {"half is free", 500, "Fine"},
		"exactly 5": {"not less than 5 %", 50, "Fine"},
		"below 5":   {"SPEC D3", 49, "Exhausted"},
		"full":      {"SPEC D3", 0, "Exhausted"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := healthy(3).free(2, c.free)
			assert.Equal(t, c.want, capacity(good(), &o.outcome).Reason, c.reason)
		})
	}
	exhausted := good()
	exhausted.Capacity = plan.Verdict{Reason: plan.ReasonExhausted, Message: "Full."}
	filled, roomy := healthy(3).free(1, 10), healthy(3)
	assert.Equal(t, exhausted.Capacity, capacity(exhausted, &filled.outcome), "the planner has more to say")
	got := capacity(exhausted, &roomy.outcome)
	assert.True(t, got.OK, "the planner has not heard yet that there is room again")
	assert.Equal(t, plan.ReasonGrowing, got.Reason)
	unseen := healthy(3)
	unseen.Replicas[1].Space = backend.Space{}
	assert.Equal(t, exhausted.Capacity, capacity(exhausted, &unseen.outcome), "unknown is not enough")
	unknown := healthy(1)
	unknown.Replicas[0].Space = backend.Space{}
	assert.Equal(t, "Fine", capacity(good(), &unknown.outcome).Reason, "unknown is not full")
}

func TestStateRemembers(t *testing.T) {
	t.Parallel()
	silent := healthy(3).silent()
	got := stateOf(silent.outcome)
	assert.Equal(t, 1, got.LayoutVersion, "that there was a layout cannot be seen now")
	assert.Equal(t, 1, got.Epoch)
	assert.Equal(t, 3, got.ReplicationFactor)
	assert.False(t, got.Healthy || got.Available)

	moving := healthy(3).step(layout.Wait, "x")
	moving.Plane.Epoch, moving.Plane.ReplicationFactor = 2, 1
	got = stateOf(moving.outcome)
	assert.Equal(t, 1, got.Epoch, "an epoch counts once its layout is as planned")
	assert.Equal(t, 3, got.ReplicationFactor)
}

func TestStateKeepsTheLastMeasurement(t *testing.T) {
	t.Parallel()
	o := healthy(1).free(0, 49)
	o.Replicas[0].ClaimBytes = 1100
	state := stateOf(o.outcome)
	assert.Equal(t, plan.ReplicaState{Node: "node-a", Up: true, Ready: true, VolumeBytes: 1000, VolumeFree: 40, Full: true, ClaimBytes: 1100}, state.Replicas[0])

	mute := healthy(1)
	mute.Previous = state
	mute.Replicas[0].Space, mute.Replicas[0].ClaimBytes = backend.Space{}, 2200
	assert.Equal(t, state.Replicas[0], stateOf(mute.outcome).Replicas[0], "full, at the size it had when it was measured")

	blind := told{outcome{Problem: "No Secret."}}
	blind.Previous = state
	state.Replicas[0].Up, state.Replicas[0].Ready = false, false
	assert.Equal(t, state.Replicas, stateOf(blind.outcome).Replicas, "what cannot be seen now is not forgotten")

	grown := healthy(1)
	grown.Previous, grown.Replicas[0].ClaimBytes = state, 2200
	after := stateOf(grown.outcome).Replicas[0]
	assert.False(t, after.Full)
	assert.Equal(t, int64(2200), after.ClaimBytes)
}

func TestTheSchedulerMayTakeAMoment(t *testing.T) {
	t.Parallel()
	pending := func(since time.Duration) corev1.Pod {
		return corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no node fits",
			LastTransitionTime: metav1.NewTime(time.Now().Add(-since)),
		}}}}
	}
	assert.Empty(t, describe(replica{}, pending(0)).Unschedulable, "its volume may be in the making")
	assert.Equal(t, "no node fits", describe(replica{}, pending(time.Hour)).Unschedulable)
}

func TestFreeSpaceIsCoarse(t *testing.T) {
	t.Parallel()
	assert.Equal(t, backend.Space{Total: 1000, Free: 510}, coarse(backend.Space{Total: 1000, Free: 519}), "every change wakes the hooks")
	assert.Equal(t, backend.Space{Total: 1000}, coarse(backend.Space{Total: 1000, Free: 9}))
	assert.Equal(t, backend.Space{}, coarse(backend.Space{}), "unknown stays unknown")
}
