package plane

import (
	"cmp"
	"slices"
	"time"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/plan"
)

// stateOf is a plane for ConfigMap data-plane: what cannot be seen now is taken over from the pass before.
func stateOf(o outcome) plan.PlaneState {
	state := plan.PlaneState{
		ID: o.Plane.ID, Epoch: o.Previous.Epoch, LayoutVersion: o.Previous.LayoutVersion,
		ReplicationFactor: o.Previous.ReplicationFactor, Problem: o.Problem, Moving: o.Moving, EpochSince: o.Previous.EpochSince,
		Opened: o.Crossing.Opened, Whole: o.Crossing.Whole, Handed: o.Crossing.Handed, Spoiled: o.Crossing.Spoiled, Proven: o.Crossing.Proven,
	}
	if o.Garage != nil {
		state.Healthy, state.Available = o.Garage.Health.Healthy(), o.Garage.Health.Available()
		if o.Garage.Layout.Version > 0 {
			state.LayoutVersion = o.Garage.Layout.Version
		}
		if o.Crossing.Kind == layout.Arrived && o.Step.Kind == layout.Steady && o.Garage.Layout.Version > 0 {
			state.Epoch, state.ReplicationFactor = o.Plane.Epoch, o.Plane.ReplicationFactor
		}
	}
	if state.Epoch != o.Previous.Epoch {
		state.EpochSince = time.Now().UTC().Format(time.RFC3339)
	}
	if state.Problem == "" && o.Step.Kind == layout.Refuse {
		state.Problem = o.Step.Message
	}
	state.Replicas = replicasOf(o)
	return state
}

// replicasOf are the replicas by ordinal, those without a role included.
func replicasOf(o outcome) []plan.ReplicaState {
	var told []plan.ReplicaState
	if len(o.Replicas) == 0 { // the pass ended before it saw any
		for _, before := range o.Previous.Replicas {
			before.Up, before.Ready = false, false
			told = append(told, before)
		}
		return told
	}
	for _, r := range o.Replicas {
		told = append(told, measured(r, o))
	}
	for _, r := range o.Spares {
		spare := measured(r, o)
		spare.Stale = stale(r, o.Previous, o.Plane.Epoch)
		spare.Proven = "" // what is acknowledged now never reaches it
		told = append(told, spare)
	}
	slices.SortFunc(told, func(a, b plan.ReplicaState) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return told
}

// measured is a replica with its volume. A gateway that does not answer for once leaves the last measurement standing:
// a volume that was full is not taken for an empty one.
func measured(r replica, o outcome) plan.ReplicaState {
	state := plan.ReplicaState{Ordinal: r.Ordinal, Node: r.Node, Up: o.isUp(r), Ready: r.Ready, Content: r.Content}
	state.Proven, state.Fill = o.before(r).Proven, o.fill(r)
	if o.Proven {
		state.Proven, state.Fill = r.Content, nil
	}
	if state.Content == "" {
		state.Content = o.before(r).Content
	}
	if r.Space.Total == 0 {
		for _, before := range o.Previous.Replicas {
			if before.Ordinal == r.Ordinal {
				state.VolumeBytes, state.VolumeFree = before.VolumeBytes, before.VolumeFree
				state.Full, state.ClaimBytes = before.Full, before.ClaimBytes
			}
		}
		return state
	}
	space := coarse(r.Space)
	state.VolumeBytes, state.VolumeFree = space.Total, space.Free
	state.Full, state.ClaimBytes = r.full(), r.ClaimBytes
	return state
}

// coarse cuts the free space down to whole percents, since every change of the state wakes the hooks.
func coarse(space backend.Space) backend.Space {
	const parts = 100
	step := space.Total / parts
	if step == 0 {
		return space
	}
	space.Free -= space.Free % step
	return space
}
