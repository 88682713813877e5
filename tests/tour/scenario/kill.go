package scenario

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/sandbox/process"
	"github.com/deckhouse/system-s3/tests/tour/ground"
)

const (
	operator      = "addon-operator"
	operatorLimit = 5 * time.Minute
)

// kills are the processes, each killed without a chance to end in order.
func kills() []Scenario {
	return []Scenario{
		{Name: "kill-garage", About: "SIGKILL of Garage in a replica", Play: kill(names.GarageApp, names.GarageContainer)},
		{Name: "kill-all", About: "SIGKILL of Garage in all replicas at the same moment", Outage: "no replica runs for a moment", Play: killAll},
		{Name: "kill-gateway", About: "SIGKILL of the gateway in a replica", Play: kill(names.GarageApp, names.GatewayContainer)},
		{Name: "kill-controller", About: "SIGKILL of a controller", Play: kill(names.ControllerApp, names.ControllerApp)},
		{Name: "kill-hooks", About: "SIGKILL of addon-operator while it runs the module's hooks", Play: killHooks},
	}
}

func kill(app, container string) func(context.Context, *ground.Ground) error {
	return func(ctx context.Context, g *ground.Ground) error {
		g.Pause(ctx, time.Second, 5*time.Second) //nolint:mnd // any moment
		pod, err := g.Any(ctx, app)
		if err != nil {
			return err
		}
		return g.Kill(ctx, pod, container)
	}
}

func killAll(ctx context.Context, g *ground.Ground) error {
	g.Pause(ctx, time.Second, 5*time.Second) //nolint:mnd // any moment
	pods, err := g.Pods(ctx, names.GarageApp)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for i := range pods {
		group.Go(func() error { return g.Kill(ctx, &pods[i], names.GarageContainer) })
	}
	return group.Wait()
}

// killHooks gives the hooks something to do, a SystemBucket more, and kills the process that runs them at any moment of
// it. Deckhouse's Pod would be started anew, and so is the process.
func killHooks(ctx context.Context, g *ground.Ground) error {
	key := client.ObjectKey{Namespace: g.Bucket.Namespace, Name: "passing"}
	if err := g.Stage.Bucket(ctx, key, "10Mi"); err != nil {
		return err
	}
	g.Pause(ctx, 0, 3*time.Second) //nolint:mnd // about as long as the hooks and the chart take
	record, alive, err := process.NewTable(g.Dir, g.Out).Find(operator)
	if err != nil {
		return fmt.Errorf("find addon-operator: %w", err)
	}
	if alive {
		if err := syscall.Kill(record.PID, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill addon-operator: %w", err)
		}
		g.Sayf("killed addon-operator")
	}
	if err := g.Sandbox(ctx, "platform", "start-operator", "--dir", string(g.Dir)); err != nil {
		return err
	}
	if err := g.AwaitBucket(ctx, key, operatorLimit); err != nil {
		return err
	}
	bucket := &v1alpha1.SystemBucket{}
	bucket.Namespace, bucket.Name = key.Namespace, key.Name
	if err := g.Admin.Delete(ctx, bucket); err != nil {
		return fmt.Errorf("delete SystemBucket %s: %w", key, err)
	}
	return g.Await(ctx, stage.Wish{What: "SystemBucket " + key.Name + " to be gone", Limit: operatorLimit, Look: func(ctx context.Context) (bool, string, error) {
		err := g.Admin.Get(ctx, key, bucket)
		return apierrors.IsNotFound(err), "", client.IgnoreNotFound(err)
	}})
}
