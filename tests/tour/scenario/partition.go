package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/deckhouse/system-s3/tests/tour/ground"
)

// forgotten is longer than Kubernetes waits for a silent node before it takes its Pods out of the Services.
const forgotten = 40 * time.Second

func partition() Scenario {
	return Scenario{Name: "partition", About: "a node with a replica is cut off from everything and comes back", Play: cutOff}
}

func cutOff(ctx context.Context, g *ground.Ground) (err error) {
	nodes, err := g.Nodes(ctx)
	if err != nil {
		return err
	}
	node := nodes[0]
	g.Sayf("%s is cut off", node)
	defer func() {
		g.Sayf("%s is connected again", node)
		err = errors.Join(err, g.Cable(context.WithoutCancel(ctx), node, "up"))
	}()
	if err := g.Cable(ctx, node, "down"); err != nil {
		return err
	}
	g.Pause(ctx, forgotten/4, forgotten+forgotten/2) //nolint:mnd // noticed by Kubernetes or not
	return nil
}
