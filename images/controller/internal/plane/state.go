package plane

import (
	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/plan"
)

// stateOf is a plane for ConfigMap data-plane: what cannot be seen now is taken over from the pass before.
func stateOf(o outcome) plan.PlaneState {
	state := plan.PlaneState{
		ID: o.Plane.ID, Epoch: o.Previous.Epoch, LayoutVersion: o.Previous.LayoutVersion,
		ReplicationFactor: o.Previous.ReplicationFactor, Problem: o.Problem,
	}
	if o.Garage != nil {
		state.Healthy, state.Available = o.Garage.Health.Healthy(), o.Garage.Health.Available()
		if o.Garage.Layout.Version > 0 {
			state.LayoutVersion = o.Garage.Layout.Version
		}
		if o.Step.Kind == layout.Steady && o.Garage.Layout.Version > 0 {
			state.Epoch, state.ReplicationFactor = o.Plane.Epoch, o.Plane.ReplicationFactor
		}
	}
	if state.Problem == "" && o.Step.Kind == layout.Refuse {
		state.Problem = o.Step.Message
	}
	for _, r := range o.Replicas {
		space := coarse(r.Space)
		state.Replicas = append(state.Replicas, plan.ReplicaState{
			Ordinal: r.Ordinal, Node: r.Node, Up: o.isUp(r), Ready: r.Ready,
			VolumeBytes: space.Total, VolumeFree: space.Free,
		})
	}
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
