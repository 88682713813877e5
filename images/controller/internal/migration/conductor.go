// Package migration moves the store from one plane to another: it gathers what lib/migration decides from, and carries
// its steps out. It runs on the leader only, in one loop, and begins from what it observes: whatever it forgot in a
// crash is proven again.
package migration

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/migration"
)

const (
	// interval is how often to look while something is awaited, idleInterval while there is no migration.
	interval     = time.Second
	idleInterval = 5 * time.Second
	soon         = 50 * time.Millisecond // while clients wait
	// holdLease is how long gateways hold writes without being told again: short, since a controller that died must not
	// keep clients waiting.
	holdLease = 10 * time.Second
	// holdRest is how long writes go on after a hold that was too long.
	holdRest = 20 * time.Second
	// askTimeout bounds one question, changeTimeout one change.
	askTimeout    = 5 * time.Second
	changeTimeout = 30 * time.Second
)

// Gateways tells where a Pod with an IP answers and with which client.
type Gateways interface {
	Address(podIP string) backend.Address
	Client(ca string) (*http.Client, error)
}

// Conductor moves the store.
type Conductor struct {
	Client client.Client
	// Fresh reads past the cache, before anything is deleted or given up for good.
	Fresh    client.Reader
	Gateways Gateways
	Board    *backend.Board
	// BytesPerSecond bounds what a migration reads; 0 is no limit.
	BytesPerSecond int64

	run     *run // what is done for the present pair of planes; nil when nothing is
	uploads waiting
	hold    holding
	told    migration.Step // last logged
	// selected is the plane that clients are sent to, and since when.
	selected string
	since    time.Time
}

// holding is a hold on writes that was begun, with the doors as they were then.
type holding struct {
	since   time.Time
	doors   []backend.Door
	writing int
	asked   bool // whether writing is of this hold
	drained bool
	rested  time.Time // since when writes go on after a hold that was too long
}

// waiting is since when something was waited for.
type waiting struct {
	since  time.Time
	looked time.Time
	count  int
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Conductor) NeedLeaderElection() bool { return true }

// Start conducts until the context ends.
func (c *Conductor) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName("migration"))
	defer c.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		next, err := c.Pass(ctx)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "move the store")
		}
		timer.Reset(next)
	}
}

// Pass observes, decides and does one step; it tells when to look again.
func (c *Conductor) Pass(ctx context.Context) (time.Duration, error) {
	seen, err := c.observe(ctx)
	if err != nil {
		return interval, err
	}
	step := migration.Next(seen.Facts)
	c.log(ctx, step)
	if err := c.act(ctx, seen, step); err != nil {
		if !c.hold.since.IsZero() {
			return soon, err
		}
		failed := migration.Step{Kind: migration.Await, Awaited: "another try after an error: " + err.Error()}
		return interval, errors.Join(err, c.tell(ctx, seen, failed))
	}
	if err := c.tell(ctx, seen, step); err != nil {
		return interval, err
	}
	switch step.Kind {
	case migration.Rest:
		return idleInterval, nil
	case migration.Await, migration.Delete:
		return interval, nil
	case migration.Fence, migration.Forward, migration.HoldOn:
		return soon, nil
	default:
		return 0, nil
	}
}

// log tells each step once.
func (c *Conductor) log(ctx context.Context, step migration.Step) {
	if step == c.told || step.Kind == migration.Rest && c.told.Kind == migration.Rest {
		return
	}
	c.told = step
	log.FromContext(ctx).Info("step", "kind", step.Kind.String(), "phase", step.Phase, "why", step.Why, "awaited", step.Awaited)
}
