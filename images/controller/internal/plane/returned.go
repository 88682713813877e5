package plane

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/layout"
)

// welcome makes the replicas compare their tables at once when one of them was away. Reads ask two replicas and take the
// newer answer, but of a listing each replica leaves out what it knows to be deleted, and what the one that was away
// does not know stays in it until Garage compares by itself, every ten minutes (garage_table 2.5.0, ANTI_ENTROPY_INTERVAL).
func (r *Reconciler) welcome(ctx context.Context, o outcome, a access) {
	if o.Plane.ReplicationFactor == 1 || o.Crossing.Kind != layout.Arrived {
		return // there is nothing to compare with, or the change of the epoch does it
	}
	nodes, returned := r.company(o, a)
	if len(returned) == 0 || len(nodes) < 2 {
		return
	}
	if err := backend.Ask(ctx, nodes, layout.CompareAll); err != nil {
		log.FromContext(ctx).Info("replicas do not compare their tables yet", "plane", o.Plane.ID, "returned", strings.Join(returned, ", "), "error", err.Error())
		return // the next pass asks again
	}
	for _, node := range nodes {
		r.memory.compared[node.Name] = node.Run
	}
}

// company is the replicas that are up, and those of them that have not compared their tables since they came.
func (r *Reconciler) company(o outcome, a access) (nodes []backend.Node, returned []string) {
	for _, each := range o.Replicas {
		if !o.isUp(each) || each.Run == "" {
			delete(r.memory.compared, each.Pod)
			continue
		}
		nodes = append(nodes, backend.Node{Name: each.Pod, Run: each.Run, Admin: r.admin(each, a)})
		if r.memory.compared[each.Pod] != each.Run {
			returned = append(returned, each.Pod)
		}
	}
	return nodes, returned
}
