package plane

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/plan"
)

const (
	// holdLease is how long gateways hold writes without being told again: longer than a Pod takes to end, so that a
	// write that waits never reaches a replica that is being given up.
	holdLease = time.Minute
	// holdMost is how long clients' writes may wait in all before the hand-over is put off by holdRest.
	holdMost = 90 * time.Second
	holdRest = time.Minute
)

// held is a hold on writes that was begun.
type held struct {
	since time.Time
	doors []backend.Door
}

// handOver holds writes until none is on its way and all tables are equal, remembers it, and stops the first replicas.
func (r *Reconciler) handOver(ctx context.Context, f facts, a access, now crossing) (crossing, error) {
	now.Handed = 0
	live := f.live()
	if !live.canHandOver() {
		r.letGo(ctx, f, a)
		now.Progress = "Before all replicas are restarted with fewer copies, the one that stays and another one must be up: " + absence(f) + "."
		return now, nil
	}
	hold := r.holds[f.Plane.ID]
	if hold.since.IsZero() {
		hold.since = time.Now()
	}
	if r.rest(ctx, f, a, hold.since) {
		now.Progress = "The hand-over to the replica that stays took too long, so writes go on for a while before it is tried again."
		return now, nil
	}
	now.Holding = true
	hold.doors = r.doors(live.Replicas, a)
	awaited, err := r.drain(ctx, live, a, hold, now.Message)
	if err != nil {
		return now, err
	}
	if awaited != "" {
		now.Progress = awaited
		return now, nil
	}
	return r.stopOthers(ctx, f, now)
}

// live is the plane without the replicas that are down or on their way out.
func (f facts) live() facts {
	f.Replicas = slices.DeleteFunc(slices.Clone(f.Replicas), func(each replica) bool { return !f.isUp(each) || !each.Exists })
	return f
}

// canHandOver tells of live replicas whether they are enough to agree and the one that stays is among them.
func (f facts) canHandOver() bool {
	return f.Garage != nil && f.Garage.Health.Available() &&
		slices.ContainsFunc(f.Replicas, func(each replica) bool { return each.Ordinal == f.Plane.Survivor })
}

// rest lets writes go on when they have waited for too long. Once the rest is over, the hold is forgotten, so that the
// next pass begins a new one.
func (r *Reconciler) rest(ctx context.Context, f facts, a access, since time.Time) bool {
	age := time.Since(since)
	if age <= holdMost {
		return false
	}
	r.letGo(ctx, f, a)
	if age < holdMost+holdRest {
		r.holds[f.Plane.ID] = held{since: since}
	}
	return true
}

// drain tells what the hand-over still waits for, one sentence, empty when the live replicas have everything that was
// ever acknowledged. Nothing was written meanwhile only if the hold had no break, so that is asked last once more.
func (r *Reconciler) drain(ctx context.Context, live facts, a access, hold held, why string) (awaited string, err error) {
	writing, err := r.hush(ctx, live, hold)
	if err != nil {
		return "", err
	}
	if writing > 0 {
		return "Writes that are on their way are waited for before all replicas are restarted with fewer copies.", nil
	}
	if gate := r.compare(ctx, live, a, equalProof(live)); !gate.Open {
		return fmt.Sprintf("%s So far: %s.", why, gate.Message), nil
	}
	if !backend.StillHeld(ctx, hold.doors) {
		delete(r.proofs, equalProof(live))
		return "Writes got in before all replicas could be restarted with fewer copies; it is tried again.", nil
	}
	return "", nil
}

// hush begins the hold on writes or goes on with it, and tells how many are still on their way.
func (r *Reconciler) hush(ctx context.Context, f facts, hold held) (writing int, err error) {
	if !backend.StillHeld(ctx, hold.doors) {
		delete(r.proofs, equalProof(f)) // it begins, or a gateway was restarted and let writes in
	}
	writing, err = backend.Hold(ctx, hold.doors, holdLease)
	r.holds[f.Plane.ID] = hold // even when not every gateway heard of it: those that did are to let go
	if err != nil {
		return 0, fmt.Errorf("hold writes: %w", err)
	}
	if writing > 0 {
		delete(r.proofs, equalProof(f)) // what they write is not in it
	}
	return writing, nil
}

// stopOthers restarts all replicas but the one that stays. That everything was handed over is remembered first: whoever
// finds a replica restarted without that word must take the epoch for spoiled.
func (r *Reconciler) stopOthers(ctx context.Context, f facts, now crossing) (crossing, error) {
	if err := r.remember(ctx, f.Plane.ID, func(s *plan.PlaneState) { s.Handed = f.Plane.Epoch }); err != nil {
		return now, err
	}
	now.Handed = f.Plane.Epoch
	r.begun[f.Plane.ID] = f.Plane.Epoch
	var others []string
	for _, each := range f.Replicas {
		if each.Ordinal != f.Plane.Survivor && each.Exists {
			others = append(others, each.Pod)
		}
	}
	return now, r.restartAll(ctx, f, others)
}

// letGo ends a hold on writes that this controller began. Gateways that do not hear it let go by themselves.
func (r *Reconciler) letGo(ctx context.Context, f facts, a access) {
	hold, began := r.holds[f.Plane.ID]
	if !began {
		return
	}
	delete(r.holds, f.Plane.ID)
	delete(r.proofs, equalProof(f))
	if f.Previous.Handed == f.Plane.Epoch && f.anyBehind(f.all()) {
		return // what waits is refused by the gateways that stop, and must reach no replica of the old epoch
	}
	if err := backend.Release(ctx, hold.doors); err != nil {
		log.FromContext(ctx).Info("a gateway did not hear that writes go on", "plane", f.Plane.ID, "error", err.Error())
	}
}
