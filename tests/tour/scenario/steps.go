package scenario

import (
	"context"
	"time"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/tour/ground"
)

// proving is about how long the controller works on a proof before it takes the step.
const proving = 20 * time.Second

func steps() Scenario {
	return Scenario{Name: "kill-steps", About: "the leading controller is killed before and after each step of a roll", Play: killSteps}
}

func killSteps(ctx context.Context, g *ground.Ground) error {
	_, all, err := g.Restarted(ctx)
	if err != nil {
		return err
	}
	if err := g.Touch(ctx); err != nil {
		return err
	}
	r := reaper{ground: g, all: all, due: map[moment]time.Time{}, killed: map[moment]bool{}}
	return Rolled(ctx, g, all, all, r.look)
}

// moment of a roll. While all replicas are ready the next step is being proven, and while one is away a step has just
// taken effect.
type moment struct{ newest, ready int }

// reaper kills the leader once in each moment of a roll.
type reaper struct {
	ground *ground.Ground
	all    int
	due    map[moment]time.Time
	killed map[moment]bool
}

func (r reaper) look(ctx context.Context, newest, ready int) error {
	now := moment{newest, ready}
	if newest == r.all || r.killed[now] || time.Now().Before(r.dueAt(now)) {
		return nil
	}
	leader, err := r.ground.Leader(ctx)
	if err != nil {
		return err
	}
	_, err = r.ground.Strike(ctx, leader, names.ControllerApp)
	if err == nil {
		r.killed[now] = true
		r.ground.Sayf("%s led, with %d of %d replicas restarted and %d ready", leader.Name, newest, r.all, ready)
	}
	return err
}

// dueAt is at once after a step and at any time of the proof before one.
func (r reaper) dueAt(now moment) time.Time {
	if at, known := r.due[now]; known {
		return at
	}
	r.due[now] = time.Now()
	if now.ready == r.all {
		r.due[now] = time.Now().Add(time.Duration(r.ground.Dice.Int64N(int64(proving))))
	}
	return r.due[now]
}
