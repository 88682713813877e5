package scenario

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/tour/ground"
)

func restart() Scenario {
	return Scenario{
		Name: "restart-all", About: "all replicas are deleted at once and come back with other addresses",
		Outage: "no replica runs for a while", Play: restartAll,
	}
}

func restartAll(ctx context.Context, g *ground.Ground) error {
	g.Pause(ctx, time.Second, 5*time.Second) //nolint:mnd // any moment
	pods, err := g.Pods(ctx, names.GarageApp)
	if err != nil {
		return err
	}
	for i := range pods {
		if err := g.Deckhouse.Delete(ctx, &pods[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s: %w", pods[i].Name, err)
		}
	}
	g.Sayf("deleted %d replicas", len(pods))
	return nil
}
