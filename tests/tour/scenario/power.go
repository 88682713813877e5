package scenario

import (
	"context"
	"errors"

	"github.com/deckhouse/system-s3/tests/tour/ground"
)

func power() []Scenario {
	return []Scenario{
		{Name: "power", About: "a node with a replica is switched off and on", Play: switchOff(1)},
		{
			Name: "power-two", About: "two nodes with replicas are switched off and on", Outage: "one replica of three has no quorum",
			Play: switchOff(2), //nolint:mnd // as many as are too many
		},
	}
}

// switchOff takes the power off so many nodes, one right after the other, and switches them on again.
func switchOff(count int) func(context.Context, *ground.Ground) error {
	return func(ctx context.Context, g *ground.Ground) (err error) {
		nodes, err := g.Nodes(ctx)
		if err != nil {
			return err
		}
		for _, node := range nodes[:min(count, len(nodes))] {
			g.Sayf("%s is switched off", node)
			defer func() {
				g.Sayf("%s is switched on", node)
				err = errors.Join(err, g.Sandbox(context.WithoutCancel(ctx), "node", "start", node))
			}()
			if err := g.Sandbox(ctx, "node", "stop", node); err != nil {
				return err
			}
		}
		g.Pause(ctx, forgotten/4, forgotten+forgotten/2) //nolint:mnd // noticed by Kubernetes or not
		return nil
	}
}
