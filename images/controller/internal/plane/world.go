// Package plane makes the planes of the plan real: it connects Garage's nodes, brings the layout to what lib/layout
// decides, changes the number of copies, imports the internal key, and tells what it sees: ConfigMap data-plane for the hooks, conditions for
// Module/system-s3, the board for buckets. Of a plane's Kubernetes objects it deletes Pods, which come back, and the
// volumes of replicas that were given up.
package plane

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/plan"
)

// facts is one plane as a pass observed it.
type facts struct {
	Plane    plan.Plane
	Previous plan.PlaneState // as the pass before told it; zero when there was none
	Replicas []replica       // by ordinal; those with a role, once the plane's epoch is in force
	Spares   []replica       // that have no role
	Begun    int             // the epoch into which this controller restarts replicas
	Garage   *view           // nil while no node answers
}

// replica is one Pod of the plane with its Garage node.
type replica struct {
	Ordinal int
	Pod     string
	ID      string // of the Garage node, from the plane's Secret
	// Exists tells whether there is a Pod that is not on its way out.
	Exists bool
	// Node is the Kubernetes node, empty while Pending.
	Node string
	// Unschedulable is the scheduler's word on why the Pod has no node.
	Unschedulable string
	IP            string
	Ready         bool
	Space         backend.Space
	// Revision is the template's that the Pod was made from; Outdated tells that it is not the present one.
	Revision string
	Outdated bool
	// Trouble is why the Pod is not ready, empty when unknown.
	Trouble string
	UID     types.UID
	// Run names the process of Garage, empty while none runs.
	Run        string
	RPCTimeout time.Duration // in force in that process
	Epoch      int           // that the Pod was made for
	// ClaimMade is when the claim was made, zero while there is none.
	ClaimMade time.Time
	// ClaimBytes is the capacity of the claim, read before Space was measured; 0 while it has none.
	ClaimBytes int64
}

// full tells whether the replica's volume has to grow.
func (r replica) full() bool { return plan.Full(r.Space.Total, r.Space.Free) }

// view is what the one node that is asked tells of its cluster.
type view struct {
	Up     map[string]bool // ids of nodes that are up
	Health garage.Health
	Layout layout.Layout
}

// outcome is a plane after the pass did its step.
type outcome struct {
	facts

	Step layout.Step
	// Crossing is how far the change of the epoch is.
	Crossing crossing
	// KeyKnown tells whether Garage has the internal key.
	KeyKnown bool
	// Problem is what went wrong in the pass, one sentence; empty when nothing did.
	Problem string
	// Rolling is how far the restarts with a changed template are, one sentence; empty when there are none.
	Rolling string
}

// usable tells whether buckets can be made and changed.
func (o outcome) usable() bool {
	return o.Garage != nil && o.Garage.Layout.Version > 0 && o.Garage.Health.Available() && o.KeyKnown
}

// existed tells whether the plane ever had a layout: from then on it is a store that may be lost, not one that starts.
func (f facts) existed() bool {
	return f.Previous.LayoutVersion > 0 || f.Garage != nil && f.Garage.Layout.Version > 0
}

func (f facts) isUp(r replica) bool { return f.Garage != nil && f.Garage.Up[r.ID] }

func (f facts) up() int {
	count := 0
	for _, r := range f.Replicas {
		if f.isUp(r) {
			count++
		}
	}
	return count
}

// homeless is the replicas whose Pod the scheduler found no node for.
func (f facts) homeless() []replica {
	return slices.DeleteFunc(slices.Clone(f.Replicas), func(r replica) bool { return r.Unschedulable == "" })
}

// world is what lib/layout decides from.
func (f facts) world() layout.World {
	w := layout.World{Factor: f.Plane.ReplicationFactor}
	if f.Garage != nil {
		w.Layout = f.Garage.Layout
	}
	for _, r := range f.Replicas {
		w.Nodes = append(w.Nodes, layout.Node{ID: r.ID, Name: r.Pod, Presence: f.presence(r)})
	}
	return w
}

func (f facts) presence(r replica) layout.Presence {
	switch {
	case r.Unschedulable != "": // Garage may still take it for up: it notices a silent end after a while only
		return layout.Homeless
	case f.isUp(r):
		return layout.Up
	default:
		return layout.Starting
	}
}
