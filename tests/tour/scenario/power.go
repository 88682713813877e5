package scenario

import (
	"context"
	"errors"

	"github.com/deckhouse/system-s3/tests/tour/ground"
)

func power() Scenario {
	return Scenario{Name: "power", About: "a node with a replica is switched off and on", Play: switchOff}
}

func switchOff(ctx context.Context, g *ground.Ground) (err error) {
	node, err := g.Node(ctx)
	if err != nil {
		return err
	}
	g.Sayf("%s is switched off", node)
	defer func() {
		g.Sayf("%s is switched on", node)
		err = errors.Join(err, g.Sandbox(context.WithoutCancel(ctx), "node", "start", node))
	}()
	if err := g.Sandbox(ctx, "node", "stop", node); err != nil {
		return err
	}
	g.Pause(ctx, forgotten/4, forgotten+forgotten/2) //nolint:mnd // noticed by Kubernetes or not
	return nil
}
