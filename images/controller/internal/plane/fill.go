package plane

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/plan"
)

// tuneInterval is how often a node that is tuned as it should be is looked at again.
const tuneInterval = time.Minute

// memory is what a process remembers so as not to ask again. Nothing is decided by it: a new leader asks.
type memory struct {
	contents map[string]content   // by Pod
	begun    map[string]beginning // of filling, by Pod
	tuned    map[string]tuned     // by Pod
	ends     map[string]end       // of Garage processes, by Pod
	compared map[string]string    // processes of Garage that have compared their tables, by Pod
}

// content of the volume of one and the same Pod, whose init container named it, so that it stays while the Pod lives.
type content struct {
	pod  types.UID
	name string
}

// beginning is when a replica was first seen being filled, and how far it was then.
type beginning struct {
	content string
	at      time.Time
	percent int
}

type tuned struct {
	run   string
	speed layout.Speed
	at    time.Time
}

func newMemory() memory {
	return memory{contents: map[string]content{}, begun: map[string]beginning{}, tuned: map[string]tuned{}, ends: map[string]end{}, compared: map[string]string{}}
}

// recall adds the contents of volumes whose gateways did not answer this time.
func (r *Reconciler) recall(replicas []replica) {
	for i := range replicas {
		each := &replicas[i]
		last := r.memory.contents[each.Pod]
		switch {
		case each.Content != "":
			r.memory.contents[each.Pod] = content{each.UID, each.Content}
		case last.pod == each.UID:
			each.Content = last.name
		}
	}
}

// fills is how far each replica that is behind is.
func (m memory) fills(f facts, accounts []layout.Account, now time.Time) map[string]plan.FillState {
	found := map[string]plan.FillState{}
	for _, each := range f.Replicas {
		progress, known := layout.Fill(each.Pod, accounts)
		if !f.behind(each) {
			delete(m.begun, each.Pod)
			continue
		}
		if !known {
			continue
		}
		state := plan.FillState{
			Percent: progress.Percent(), Objects: stepped(progress.Objects, progress.ObjectsTotal), ObjectsTotal: progress.ObjectsTotal,
			Blocks: stepped(progress.Blocks, progress.BlocksTotal), BlocksTotal: progress.BlocksTotal, Bytes: used(each),
		}
		for _, other := range f.Replicas {
			state.BytesTotal = max(state.BytesTotal, used(other))
		}
		state.SecondsLeft = m.left(each, state.Percent, now)
		found[each.Pod] = state
	}
	return found
}

// stepped cuts down to whole percents: every change of the state is written, and each time it is written there is a pass.
func stepped(n, total int) int {
	const parts = 100
	return n - n%max(1, total/parts)
}

func used(r replica) int64 {
	space := coarse(r.Space)
	return space.Total - space.Free
}

// left is an estimate from the speed since the beginning, in whole minutes.
func (m memory) left(r replica, percent int, now time.Time) int {
	const all = 100
	begun, known := m.begun[r.Pod]
	if !known || begun.content != r.Content || percent < begun.percent {
		m.begun[r.Pod] = beginning{content: r.Content, at: now, percent: percent}
		return 0
	}
	if percent == begun.percent {
		return 0
	}
	left := now.Sub(begun.at) * time.Duration(all-percent) / time.Duration(percent-begun.percent)
	return int(left.Truncate(time.Minute).Seconds())
}

// tune makes every node copy as fast as it should, see layout.Tune.
func (r *Reconciler) tune(ctx context.Context, o outcome, a access) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	now := time.Now()
	for _, each := range o.Replicas {
		if !o.isUp(each) || each.Run == "" {
			continue
		}
		want, _ := layout.Tune(o.filling(), nil)
		if last := r.memory.tuned[each.Pod]; last.run == each.Run && last.speed == want && now.Sub(last.at) < tuneInterval {
			continue
		}
		if err := r.tuneOne(ctx, each, a, o.filling()); err != nil {
			log.FromContext(ctx).Info("the speed of copying cannot be set", "pod", each.Pod, "error", err.Error())
			continue
		}
		r.memory.tuned[each.Pod] = tuned{run: each.Run, speed: want, at: now}
	}
}

func (r *Reconciler) tuneOne(ctx context.Context, each replica, a access, filling bool) error {
	admin := r.admin(each, a)
	workers, err := admin.ListWorkers(ctx)
	if err != nil {
		return err
	}
	want, scrub := layout.Tune(filling, workers)
	switch scrub {
	case layout.PauseScrub:
		err = admin.PauseScrub(ctx)
	case layout.ResumeScrub:
		err = admin.ResumeScrub(ctx)
	case layout.LeaveScrub:
	}
	if err != nil {
		return err
	}
	has, err := admin.GetSpeed(ctx)
	if err != nil || has == want {
		return err
	}
	log.FromContext(ctx).Info("the speed of copying changes", "pod", each.Pod, "workers", want.Workers, "tranquility", want.Tranquility)
	return admin.SetSpeed(ctx, want)
}
