package plane

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/names"
)

// proofInterval is how often the nodes are asked how far their copies are: each question costs Garage about 18 ms of
// CPU for the token alone.
const proofInterval = 3 * time.Second

// turn restarts or moves the replica whose turn it is, and looks at what replicas hold. What it found goes into the
// outcome.
func (r *Reconciler) turn(ctx context.Context, o *outcome, a access) error {
	if o.Plane.Frozen != "" || o.Crossing.Kind != layout.Arrived || o.Crossing.Shut {
		return nil // the chart leaves it alone, and so do we; or a change of the epoch restarts all
	}
	marked, turn, err := r.next(ctx, o.facts)
	if err != nil {
		return err
	}
	o.Place = turn.Place
	if turn.Place.Reason == layout.ReasonRelocating {
		o.Moving = turn.Place.Pod
	}
	switch turn.Kind {
	case layout.Replace:
		o.Rolling = turn.Message
		return r.restart(ctx, marked, turn)
	case layout.ReplaceProof, layout.Renew:
		return r.behindGate(ctx, o, a, turn)
	case layout.Rest, layout.Hold:
		o.Rolling = turn.Message
		if !o.Crossing.Proving {
			r.ascertain(ctx, o, a)
		}
	}
	r.tune(ctx, *o, a)
	return nil
}

// next is whose turn it is. Replicas without a role, which serve nobody, are restarted on the way.
func (r *Reconciler) next(ctx context.Context, f facts) (facts, layout.Turn, error) {
	marked, err := r.markOutdated(ctx, f)
	if err != nil {
		return f, layout.Turn{}, err
	}
	if err := r.rollSpares(ctx, marked); err != nil {
		return f, layout.Turn{}, err
	}
	scene, err := marked.scene(time.Now())
	if err != nil {
		return f, layout.Turn{}, err
	}
	return marked, layout.Next(scene), nil
}

// behindGate does what needs a proof once there is one, and tells what it waits for until then.
func (r *Reconciler) behindGate(ctx context.Context, o *outcome, a access, turn layout.Turn) error {
	absent := ""
	if turn.Living {
		absent = turn.Pod
	}
	gate := r.prove(ctx, o, a, absent)
	r.tune(ctx, *o, a)
	then := fmt.Sprintf("; before that: %s.", gate.Message)
	if gate.Open {
		then = ": this happens now."
	}
	switch {
	case turn.Message == "":
		o.Place.Message += then
	case gate.Open:
		o.Rolling = fmt.Sprintf("%s; %s is restarted.", turn.Message, turn.Pod)
	default:
		o.Rolling = fmt.Sprintf("%s, one after the other; before %s can be restarted: %s.", turn.Message, turn.Pod, gate.Message)
	}
	switch {
	case !gate.Open:
		return nil
	case turn.Kind == layout.Renew:
		return r.renew(ctx, o.facts, turn)
	default:
		return r.restart(ctx, o.facts, turn)
	}
}

// ascertain goes on with the proof that every replica holds everything, when one of them has a volume that was never
// proven to: whoever fails next has to be made anew from the others.
func (r *Reconciler) ascertain(ctx context.Context, o *outcome, a access) {
	if o.Plane.ReplicationFactor == 1 {
		o.Proven = o.usable() // the only copy is all there is
		return
	}
	missing := false
	for _, each := range o.Replicas {
		if each.Content == "" || !o.isUp(each) {
			return
		}
		missing = missing || !o.whole(each)
	}
	if !missing {
		delete(r.proofs, o.Plane.ID)
		return
	}
	r.prove(ctx, o, a, "")
}

// prove goes one step on with the proof that every replica holds everything, or, when one is absent, that the others
// do without it.
func (r *Reconciler) prove(ctx context.Context, o *outcome, a access, absent string) layout.Gate {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	evidence := layout.Evidence{Now: time.Now(), Absent: absent}
	nodes := make([]backend.Node, 0, len(o.Replicas))
	ids := map[string]string{}
	for _, each := range o.Replicas {
		ids[each.ID] = each.Pod
		if each.Pod == absent {
			continue
		}
		evidence.Delay = max(evidence.Delay, 2*each.RPCTimeout) //nolint:mnd // Garage's own rule
		nodes = append(nodes, backend.Node{Name: each.Pod, Run: each.Run, Admin: r.admin(each, a)})
	}
	if absent == "" {
		evidence.Accounts = backend.Accounts(ctx, nodes)
	} else {
		evidence.Accounts = backend.LivingAccounts(ctx, nodes, ids)
	}
	gate := layout.Prove(r.proofs[o.Plane.ID], evidence)
	if gate.Examine {
		evidence.Accounts = backend.Examined(ctx, nodes, evidence.Accounts)
		gate = layout.Prove(gate.Proof, evidence)
	}
	if gate.Request != layout.NoRequest {
		log.FromContext(ctx).Info("proof of all copies", "plane", o.Plane.ID, "absent", absent, "message", gate.Message)
	}
	if err := backend.Ask(ctx, nodes, gate.Request); err != nil {
		log.FromContext(ctx).Info("a node did not take a request, the proof starts over", "plane", o.Plane.ID, "error", err.Error())
		gate.Proof = layout.Proof{}
	}
	r.proofs[o.Plane.ID] = gate.Proof
	if gate.Open {
		delete(r.proofs, o.Plane.ID) // one proof for one step
	}
	o.Awaited, o.Proven = gate.Message, gate.Open && absent == ""
	if !gate.Open {
		o.Fills = r.memory.fills(o.facts, evidence.Accounts, evidence.Now)
	}
	return gate
}

func (r *Reconciler) admin(each replica, a access) *garage.Client {
	return garage.New(r.Gateways.Address(each.IP).Admin, a.adminToken, a.http)
}

// renew deletes the replica's claim and then its Pod, whose StatefulSet makes both again. The claim goes when the Pod
// does: killed in between, the next pass sees a claim that is being deleted and begins with a proof again. UIDs guard
// against deleting what has been made anew.
func (r *Reconciler) renew(ctx context.Context, f facts, turn layout.Turn) error {
	for _, each := range f.Replicas {
		if each.Pod != turn.Pod {
			continue
		}
		log.FromContext(ctx).Info("a replica gets a new volume", "pod", turn.Pod, "claim", each.Claim.Name, "message", turn.Place.Message)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: each.Claim.Name}}
		err := r.Client.Delete(ctx, claim, client.Preconditions{UID: &each.Claim.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete PersistentVolumeClaim %s: %w", claim.Name, err)
		}
	}
	return r.restart(ctx, f, turn)
}

// placeMessage is a notice as a sentence.
func placeMessage(n layout.Notice) string { return strings.TrimSuffix(n.Message, ".") + "." }
