package plane

import (
	"context"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/plan"
)

const (
	prepareContainer = "prepare"
	epochVariable    = "EPOCH"

	// leftFor is how long a replica without a role may get it back: Garage forgets deletions after a day.
	leftFor = 12 * time.Hour
)

// crossing is how far the plane is with its change of the epoch.
type crossing struct {
	layout.Crosswise

	// Holding tells that writes are being held: nobody else is to change anything either.
	Holding bool
	// Proving tells that the proof of all copies goes on already in this pass.
	Proving bool
	// Shut tells that the epoch is in force and no client is let in yet.
	Shut bool
	// Opened, Whole, Handed, Spoiled and Proven are what plan.PlaneState remembers.
	Opened, Whole, Handed, Spoiled int
	Proven                         bool
	// Progress is one sentence on what the change waits for, empty when there is none.
	Progress string
}

// remembered is what the pass before knew of the change.
func (f facts) remembered() crossing {
	return crossing{Opened: f.Previous.Opened, Whole: f.Previous.Whole, Handed: f.Previous.Handed, Spoiled: f.Previous.Spoiled}
}

// podEpoch is the epoch that the Pod was made for, the first when it does not tell.
func podEpoch(pod corev1.Pod) int {
	for _, container := range pod.Spec.InitContainers {
		if container.Name != prepareContainer {
			continue
		}
		for _, variable := range container.Env {
			if epoch, err := strconv.Atoi(variable.Value); variable.Name == epochVariable && err == nil {
				return epoch
			}
		}
	}
	return 1
}

// divide tells replicas with a role from those without, once the plane's epoch is in force. Before, all count.
func (f facts) divide(all []replica) facts {
	f.Replicas, f.Spares = nil, nil
	behind := f.anyBehind(all)
	for _, r := range all {
		if behind || slices.Contains(f.Plane.Members, r.Ordinal) || len(f.Plane.Members) == 0 {
			f.Replicas = append(f.Replicas, r)
		} else {
			f.Spares = append(f.Spares, r)
		}
	}
	return f
}

// anyBehind tells whether a Pod of an earlier epoch runs on.
func (f facts) anyBehind(all []replica) bool {
	return slices.ContainsFunc(all, func(r replica) bool { return r.Exists && r.Epoch < f.Plane.Epoch })
}

// all are the replicas with and without a role.
func (f facts) all() []replica { return append(slices.Clone(f.Replicas), f.Spares...) }

// askable are the replicas that may be asked for all: in the middle of a change those that serve. A replica without a
// role does not, and two epochs know nothing of each other.
func (f facts) askable() []replica {
	if !f.anyBehind(f.Replicas) {
		return f.Replicas
	}
	old := slices.DeleteFunc(slices.Clone(f.Replicas), func(r replica) bool { return r.Epoch >= f.Plane.Epoch })
	if serving := slices.DeleteFunc(slices.Clone(old), func(r replica) bool { return !r.Ready }); len(serving) > 0 {
		return serving
	}
	return old
}

func (f facts) crossingWorld() layout.Crossing {
	c := layout.Crossing{
		Epoch: f.Plane.Epoch, GivesUp: f.Plane.ReplicationFactor == 1, Handed: f.Previous.Handed, Begun: f.Begun == f.Plane.Epoch,
	}
	for _, r := range f.all() {
		c.Runners = append(c.Runners, layout.Runner{
			Pod: r.Pod, Epoch: r.Epoch, Exists: r.Exists, Runs: r.Run != "", Up: f.isUp(r), Keeps: r.Ordinal == f.Plane.Survivor,
		})
	}
	return c
}

// cross does the next step into the plane's epoch.
func (r *Reconciler) cross(ctx context.Context, f facts, a access) (crossing, error) {
	now := f.remembered()
	now.Crosswise = layout.CrossOver(f.crossingWorld())
	now.Progress = now.Message
	if f.Plane.Frozen != "" || now.Kind != layout.HandOver {
		r.letGo(ctx, f, a)
	}
	if f.Plane.Frozen != "" {
		return now, nil
	}
	switch now.Kind {
	case layout.HandOver:
		return r.handOver(ctx, f, a, now)
	case layout.Cross:
		return now, r.restartAll(ctx, f, now.Pods)
	case layout.Spoil:
		now.Spoiled = f.Plane.Epoch
	case layout.Arrived, layout.Linger:
	}
	return now, nil
}

func equalProof(f facts) string { return f.Plane.ID + "/equal" }

func (r *Reconciler) doors(replicas []replica, a access) []backend.Door {
	doors := make([]backend.Door, 0, len(replicas))
	for _, each := range replicas {
		if each.IP != "" && each.Exists {
			doors = append(doors, backend.Door{Name: each.Pod, URL: r.Gateways.Address(each.IP).Admin, Token: a.adminToken, HTTP: a.http})
		}
	}
	return doors
}

// compare goes on with the proof that all tables are equal. A replica that is lost is no part of it.
func (r *Reconciler) compare(ctx context.Context, f facts, a access, key string) layout.Gate {
	evidence, nodes := r.evidence(ctx, f, a)
	if len(f.Replicas) < quorumOf(f) {
		return layout.Gate{Message: "too few replicas are up"}
	}
	for i := range evidence.Accounts {
		if f.anyBehind(f.Replicas) && len(f.Replicas) < f.Plane.Replicas { // the others are lost
			evidence.Accounts[i].AllConnected = true
		}
	}
	gate := layout.Equal(r.proofs[key], evidence)
	if err := backend.Ask(ctx, nodes, gate.Request); err != nil {
		gate.Proof = layout.Proof{}
	}
	r.proofs[key] = gate.Proof
	return gate
}

// quorumOf is how many replicas know everything together: of three any two.
func quorumOf(f facts) int {
	if f.anyBehind(f.Replicas) || f.Plane.ReplicationFactor > 1 {
		return quorum(3) //nolint:mnd // copies
	}
	return 1
}

// restartAll deletes the Pods, which come back in the plane's epoch.
func (r *Reconciler) restartAll(ctx context.Context, f facts, pods []string) error {
	for _, pod := range pods {
		all := f
		all.Replicas = f.all()
		if err := r.restart(ctx, all, layout.Turn{Pod: pod, Message: "change of the number of copies"}); err != nil {
			return err
		}
	}
	return nil
}

// settle is what an epoch in force still needs: clients are let in once no replica answers less than it should, and
// then it is proven that nothing is missing anywhere. In the first epoch the doors were never shut.
func (r *Reconciler) settle(ctx context.Context, o *outcome, a access) crossing {
	now := o.Crossing
	if o.Plane.Epoch != 1 {
		if now.Opened < o.Plane.Epoch {
			if now = r.admit(ctx, o, a); now.Shut {
				return now
			}
		}
		r.open(ctx, o.facts, a)
	}
	if !o.steady() || !o.wantsProof(now) {
		return now
	}
	return r.survey(ctx, o, a, now)
}

// admit tells whether clients may be let in, since no replica answers less than it should. Until then they wait at the
// doors.
func (r *Reconciler) admit(ctx context.Context, o *outcome, a access) crossing {
	now := o.Crossing
	now.Shut = true
	r.expect(ctx, o.facts, a)
	if !o.steady() {
		return now
	}
	if o.Plane.ReplicationFactor > 1 { // a single replica was handed everything before
		if gate := r.compare(ctx, o.facts, a, equalProof(o.facts)); !gate.Open {
			now.Progress = "Clients wait until all tables are equal: " + gate.Message + "."
			return now
		}
	}
	now.Opened, now.Shut = o.Plane.Epoch, false
	return now
}

// steady tells whether replicas and layout are as they should be and Garage knows the key that gateways use.
func (o outcome) steady() bool { return o.arranged() && o.KeyKnown }

// arranged tells whether there is a layout and nothing about it is left to do.
func (o outcome) arranged() bool {
	return o.Garage != nil && o.Step.Kind == layout.Steady && o.Garage.Layout.Version > 0
}

// wantsProof tells whether copies are to be proven: whenever the plan asks, and else once in each epoch after the first.
func (o outcome) wantsProof(now crossing) bool {
	return o.Plane.Survey || o.Plane.Epoch != 1 && now.Whole < o.Plane.Epoch
}

// survey proves that every replica with a role holds all copies.
func (r *Reconciler) survey(ctx context.Context, o *outcome, a access, now crossing) crossing {
	if o.Plane.Survey && o.Previous.Proven {
		now.Proven = true
		return now
	}
	now.Proving = true
	gate := r.prove(ctx, o, a, "")
	if !gate.Open {
		now.Progress = "Before every copy is proven: " + gate.Message + "."
		return now
	}
	now.Whole, now.Proven = o.Plane.Epoch, o.Plane.Survey
	return now
}

// expect makes clients wait at the doors instead of meeting none.
func (r *Reconciler) expect(ctx context.Context, f facts, a access) {
	for _, door := range r.doors(f.Replicas, a) {
		if err := door.Expect(ctx, f.Plane.Epoch); err != nil {
			log.FromContext(ctx).V(1).Info("a gateway does not know yet that clients will be let in", "pod", door.Name, "error", err.Error())
		}
	}
}

// open lets clients in at every replica with a role that does not do so yet.
func (r *Reconciler) open(ctx context.Context, f facts, a access) {
	for _, door := range r.doors(f.Replicas, a) {
		isOpen, err := door.IsOpen(ctx)
		if err == nil && !isOpen {
			err = door.Open(ctx, f.Plane.Epoch)
		}
		if err != nil {
			log.FromContext(ctx).Info("a gateway lets no clients in yet", "pod", door.Name, "error", err.Error())
		}
	}
}

// unfinished tells whether the plane may not get the first layout of its epoch: with fewer copies than before it must
// have been handed everything.
func (f facts) unfinished() bool {
	return f.Plane.ReplicationFactor == 1 && f.Plane.Epoch > 1 && f.Garage != nil && f.Garage.Layout.Version == 0 &&
		f.Previous.Handed != f.Plane.Epoch
}

// stale tells whether a replica without a role has been without it for too long to get it back.
func stale(r replica, previous plan.PlaneState, epoch int) bool {
	if epoch == 1 || previous.Epoch != epoch || r.Claim.Made.IsZero() {
		return false
	}
	since, err := time.Parse(time.RFC3339, previous.EpochSince)
	if err != nil {
		return true // nobody knows for how long
	}
	return r.Claim.Made.Before(since) && time.Since(since) > leftFor
}

// evidence asks all replicas with a role what they tell of their own copies.
func (r *Reconciler) evidence(ctx context.Context, f facts, a access) (layout.Evidence, []backend.Node) {
	evidence := layout.Evidence{Now: time.Now()}
	nodes := make([]backend.Node, 0, len(f.Replicas))
	for _, each := range f.Replicas {
		evidence.Delay = max(evidence.Delay, 2*each.RPCTimeout) //nolint:mnd // Garage's own rule
		admin := garage.New(r.Gateways.Address(each.IP).Admin, a.adminToken, a.http)
		nodes = append(nodes, backend.Node{Name: each.Pod, Run: each.Run, Admin: admin})
	}
	evidence.Accounts = backend.Accounts(ctx, nodes)
	return evidence, nodes
}
