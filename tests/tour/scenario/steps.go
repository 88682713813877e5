package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/tour/ground"
)

// proving is about how long the controller works on a proof before it takes the step.
const proving = 20 * time.Second

func steps() Scenario {
	return Scenario{Name: "kill-steps", About: "the leading controller is killed before and after each step of a roll", Play: killSteps}
}

// killSteps kills the leader once in every state of the roll: while all replicas are there the next step is being
// proven, and while one is away a step has just taken effect.
func killSteps(ctx context.Context, g *ground.Ground) error {
	_, all, err := g.Restarted(ctx)
	if err != nil {
		return err
	}
	if err := g.Touch(ctx); err != nil {
		return err
	}
	due, killed := map[string]time.Time{}, map[string]bool{}
	return Rolled(ctx, g, all, all, func(ctx context.Context, newest, ready int) error {
		state := fmt.Sprintf("%d of %d", newest, ready)
		if _, known := due[state]; !known {
			due[state] = time.Now()
			if ready == all { // before the step, at any moment of the proof
				due[state] = time.Now().Add(time.Duration(g.Dice.Int64N(int64(proving))))
			}
		}
		if newest == all || killed[state] || time.Now().Before(due[state]) {
			return nil
		}
		leader, err := g.Leader(ctx)
		if err != nil {
			return err
		}
		for _, status := range leader.Status.ContainerStatuses {
			if status.Name != names.ControllerApp || status.State.Running == nil {
				continue
			}
			if err := ground.KillContainer(ctx, g.Stage, leader.Spec.NodeName, status.ContainerID); err != nil {
				return err
			}
			killed[state] = true
			g.Sayf("killed the leader %s with %d of %d replicas restarted, %d ready", leader.Name, newest, all, ready)
		}
		return nil
	})
}
