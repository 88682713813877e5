package plane

import (
	"context"
	"slices"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/module"
	"github.com/deckhouse/system-s3/lib/plan"
)

type telling struct {
	wanted      plan.Plan
	previous    plan.State
	outcomes    []outcome
	connections map[string]*backend.Connection
}

// tell publishes what the pass saw, to whoever needs it: buckets first, since they wait.
func (r *Reconciler) tell(ctx context.Context, t telling) error {
	active := t.active()
	ready := storage(t.wanted, active)
	store := backend.Store{Exists: len(t.wanted.Planes) > 0, Ready: ready}
	if active != nil && ready.OK {
		store.Connection = t.connections[active.Plane.ID]
	}
	if t.goesOver() {
		r.Board.Clear()
	} else {
		r.Board.Post(store)
	}

	state := plan.State{Planes: []plan.PlaneState{}}
	for _, o := range t.outcomes {
		state.Planes = append(state.Planes, stateOf(o))
	}
	for _, p := range t.wanted.Planes {
		if p.Role == plan.RoleRetiring {
			state.Planes = append(state.Planes, previousOf(t.previous, p.ID))
		}
	}
	if err := r.writeState(ctx, state); err != nil {
		return err
	}
	return r.Conditions.Publish(ctx, []module.Condition{
		{Type: module.StorageReady, Verdict: ready},
		{Type: module.PlacementReady, Verdict: placement(t.wanted, active)},
		{Type: module.CapacityReady, Verdict: capacity(t.wanted, active)},
		{Type: module.MigrationReady, Verdict: migration(t, active)},
	})
}

// active is the plane that is the store: after the switch the target, even while the plan does not say so yet.
func (t telling) active() *outcome {
	i := slices.IndexFunc(t.outcomes, func(o outcome) bool {
		if m := t.previous.Migration; m != nil && m.Phase == plan.PhaseSwitched {
			return o.Plane.ID == m.Target
		}
		return o.Plane.Role == plan.RoleActive
	})
	if i < 0 {
		return nil
	}
	return &t.outcomes[i]
}

// goesOver tells whether buckets are to stay as they are, because they are about to be in another plane.
func (t telling) goesOver() bool {
	m := t.previous.Migration
	return m != nil && (m.Phase == plan.PhaseHolding || m.Phase == plan.PhaseFencing)
}

// leftPlane is the plane that takes no more writes, or is about to take none: a replica that gets a new volume would
// forget it.
func leftPlane(state plan.State) string {
	m := state.Migration
	if m == nil || m.Phase != plan.PhaseHolding && !m.Phase.Fenced() {
		return ""
	}
	return m.Source
}
