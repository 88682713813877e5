// Package plane makes the planes of the plan real: it connects Garage's nodes, brings the layout to what lib/layout
// decides, changes the number of copies, imports the internal key, and tells what it sees: ConfigMap data-plane for the
// hooks, conditions for Module/system-s3, the board for buckets. It restarts and moves replicas, whose Pods and claims it
// deletes with proof of the other copies; everything else of a plane's Kubernetes objects is the chart's.
package plane

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	Nodes    []corev1.Node
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
	// ClaimBytes is the capacity of the claim, read before Space was measured; 0 while it has none.
	ClaimBytes int64
	Claim      claim
	// Content names what is on the volume, empty while unknown.
	Content string
	// Damage is Garage's word that it cannot read its database; empty when it has not said so.
	Damage string
}

// claim is the replica's PersistentVolumeClaim with what ties its volume to nodes.
type claim struct {
	Name    string
	UID     types.UID
	Made    time.Time
	Bound   bool
	Leaving bool
	// Affinity of the volume; nil when every node can use it.
	Affinity *corev1.NodeSelector
	// VolumeGone tells that the claim is bound to a volume that does not exist.
	VolumeGone bool
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
	// Place is what there is to tell of where replicas are.
	Place  layout.Notice
	Moving string // Pod of the replica that moves or waits to
	Proven bool   // every replica was seen to hold everything
	// Awaited is what the gate waits for, one clause; empty when none was asked.
	Awaited string
	// Fills is how far replicas are filled from the others, by Pod.
	Fills map[string]plan.FillState
}

// fill is how far the replica is filled, as far as is known; nil when it need not be.
func (o outcome) fill(r replica) *plan.FillState {
	if !o.behind(r) {
		return nil
	}
	if state, known := o.Fills[r.Pod]; known {
		return &state
	}
	return o.before(r).Fill
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
