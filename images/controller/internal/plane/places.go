package plane

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

func (r *Reconciler) nodes(ctx context.Context) ([]corev1.Node, error) {
	var list corev1.NodeList
	if err := r.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return list.Items, nil
}

// describeClaim adds the replica's claim and what its volume tells of where it can be used. A claim that is not there is
// a fact; one that cannot be read is an error.
func (r *Reconciler) describeClaim(ctx context.Context, plane string, each replica) (replica, error) {
	var object corev1.PersistentVolumeClaim
	each.Claim.Name = names.GarageClaim(plane, each.Ordinal)
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: each.Claim.Name}, &object)
	if apierrors.IsNotFound(err) {
		return each, nil
	}
	if err != nil {
		return each, fmt.Errorf("read PersistentVolumeClaim %s: %w", each.Claim.Name, err)
	}
	each.ClaimBytes = object.Status.Capacity.Storage().Value()
	each.Claim.UID, each.Claim.Made = object.UID, object.CreationTimestamp.Time
	each.Claim.Leaving, each.Claim.Bound = object.DeletionTimestamp != nil, object.Spec.VolumeName != ""
	if !each.Claim.Bound {
		return each, nil
	}
	var volume corev1.PersistentVolume
	err = r.Client.Get(ctx, client.ObjectKey{Name: object.Spec.VolumeName}, &volume)
	switch {
	case apierrors.IsNotFound(err):
		each.Claim.VolumeGone = true
	case err != nil:
		return each, fmt.Errorf("read PersistentVolume %s: %w", object.Spec.VolumeName, err)
	case volume.Spec.NodeAffinity != nil:
		each.Claim.Affinity = volume.Spec.NodeAffinity.Required
	}
	return each, nil
}

// scene is what lib/layout decides from whose turn it is.
func (f facts) scene(now time.Time) (layout.Scene, error) {
	s := layout.Scene{Now: now, Label: f.Plane.NodeLabel, WaysOut: f.Plane.WaysOut()}
	for _, node := range f.Nodes {
		s.Places = append(s.Places, f.place(node))
	}
	for _, each := range f.Replicas {
		resident, err := f.resident(each)
		if err != nil {
			return s, err
		}
		s.Residents = append(s.Residents, resident)
		s.Pause = max(s.Pause, layout.PauseOf(each.RPCTimeout))
		if each.Claim.Made.After(s.Moved) {
			s.Moved = each.Claim.Made
		}
	}
	return s, nil
}

func (f facts) place(node corev1.Node) layout.Place {
	_, inTier := node.Labels[f.Plane.NodeLabel]
	return layout.Place{
		Name: node.Name, InTier: inTier && node.DeletionTimestamp == nil, Ready: isReady(node), Closed: closed(node, f.Plane.Tolerations),
	}
}

func isReady(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// closed is why the scheduler would put no Pod of the plane on the node.
func closed(node corev1.Node, tolerated []plan.Toleration) string {
	if node.Spec.Unschedulable {
		return "is cordoned"
	}
	tolerations := make([]corev1.Toleration, 0, len(tolerated))
	for _, t := range tolerated {
		tolerations = append(tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOperator(t.Operator), Value: t.Value})
	}
	hard := func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}
	taint, found := scheduling.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, tolerations, hard, false)
	if !found {
		return ""
	}
	return "has the taint " + taint.ToString()
}

func (f facts) resident(r replica) (layout.Resident, error) {
	resident := layout.Resident{
		Replica: layout.Replica{Pod: r.Pod, Exists: r.Exists, Ready: r.Ready, Outdated: r.Outdated, Trouble: r.Trouble},
		Node:    r.Node, Up: f.isUp(r) && r.Exists,
		Volume: layout.Volume{
			Claim: r.Claim.Name, Bound: r.Claim.Bound, Leaving: r.Claim.Leaving, Whole: f.whole(r), Damage: r.Damage,
			Anywhere: r.Claim.Affinity == nil && !r.Claim.VolumeGone,
		},
	}
	if r.Claim.Affinity == nil {
		return resident, nil
	}
	selector, err := nodeaffinity.NewNodeSelector(r.Claim.Affinity)
	if err != nil {
		return resident, fmt.Errorf("the node affinity of the volume of %s: %w", r.Claim.Name, err)
	}
	for _, node := range f.Nodes {
		if selector.Match(&node) {
			resident.Volume.Homes = append(resident.Volume.Homes, node.Name)
		}
	}
	resident.Volume.Missing = f.missing(r.Claim.Affinity)
	return resident, nil
}

// missing are the nodes that an affinity names and that do not exist.
func (f facts) missing(affinity *corev1.NodeSelector) []string {
	var found []string
	for _, term := range affinity.NodeSelectorTerms {
		for _, each := range slices.Concat(term.MatchExpressions, term.MatchFields) {
			if each.Operator != corev1.NodeSelectorOpIn || each.Key != corev1.LabelHostname && each.Key != "metadata.name" {
				continue
			}
			for _, name := range each.Values {
				if !slices.ContainsFunc(f.Nodes, func(n corev1.Node) bool { return n.Name == name || n.Labels[corev1.LabelHostname] == name }) {
					found = append(found, name)
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// before is a replica as the pass before told it.
func (f facts) before(r replica) plan.ReplicaState {
	i := slices.IndexFunc(f.Previous.Replicas, func(s plan.ReplicaState) bool { return s.Ordinal == r.Ordinal })
	if i < 0 {
		return plan.ReplicaState{}
	}
	return f.Previous.Replicas[i]
}

// whole tells whether the replica has what it had when all were last proven to hold everything.
func (f facts) whole(r replica) bool { return r.Content != "" && r.Content == f.before(r).Proven }

// everProven tells whether all replicas were proven at all. Before that they are new, and none is behind.
func (f facts) everProven() bool {
	return slices.ContainsFunc(f.Replicas, func(r replica) bool { return f.before(r).Proven != "" })
}

// behind tells whether the replica is to be filled from the others.
func (f facts) behind(r replica) bool { return r.Content != "" && !f.whole(r) && f.everProven() }

// filling tells whether some replica is to be filled from the others.
func (f facts) filling() bool { return slices.ContainsFunc(f.Replicas, f.behind) }
