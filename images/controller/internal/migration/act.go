package migration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	keys "github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/migration"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

var errNoReplica = errors.New("no replica serves")

// act carries a step out. Of Rest and Await there is nothing to do.
func (c *Conductor) act(ctx context.Context, s seen, step migration.Step) error {
	do, something := map[migration.Kind]func() error{
		migration.Record:  func() error { return c.enter(ctx, s, step) },
		migration.Forget:  func() error { return c.forget(ctx, s) },
		migration.Copy:    func() error { return c.copy(ctx, s) },
		migration.Verify:  func() error { return c.verify(ctx) },
		migration.HoldOn:  func() error { return c.holdOn(ctx, s) },
		migration.Settle:  func() error { return c.settle(ctx, s) },
		migration.LetGo:   func() error { return c.letGo(ctx, s, step.Phase) },
		migration.Fence:   func() error { return c.fence(ctx, s) },
		migration.Again:   func() error { return c.again(ctx, s) },
		migration.Forward: func() error { return c.forward(ctx, s) },
		migration.Delete:  func() error { return c.remove(ctx, s, step.Plane) },
	}[step.Kind]
	if !something {
		return nil
	}
	return do()
}

func (c *Conductor) verify(ctx context.Context) error {
	c.run.start(ctx, c.run.verify, func(w *migration.Work) { w.Verified = true })
	return nil
}

func (c *Conductor) forget(ctx context.Context, s seen) error {
	c.end(ctx, s)
	return c.record(ctx, func(*plan.MigrationState) *plan.MigrationState { return nil })
}

// enter persists a phase. From Holding on nobody makes or deletes buckets until the store has gone over.
func (c *Conductor) enter(ctx context.Context, s seen, step migration.Step) error {
	if step.Phase == plan.PhaseHolding {
		c.Board.Suspend()
		if err := c.run.buckets.equal(ctx); err != nil {
			c.Board.Resume()
			return err
		}
		c.hold = holding{}
	}
	return c.record(ctx, func(state *plan.MigrationState) *plan.MigrationState {
		if state == nil {
			state = &plan.MigrationState{Source: step.Source, Target: step.Target}
		}
		state.Phase, state.Since, state.Awaited = step.Phase, now(), ""
		state.BytesPerSecond, state.SecondsLeft = 0, 0
		return state
	})
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// copy begins a pass, and before it a journal when the one that runs has a gap.
func (c *Conductor) copy(ctx context.Context, s seen) error {
	if s.Gap() != "" {
		c.Stop()
		begun, err := c.newRun(ctx, s, true)
		if err != nil {
			return err
		}
		c.run = begun
	}
	c.run.start(ctx, c.run.pass, func(w *migration.Work) { w.Copied = true })
	return nil
}

// again compares everything under the fence.
func (c *Conductor) again(ctx context.Context, s seen) error {
	c.Stop()
	begun, err := c.newRun(ctx, s, false)
	if err != nil {
		return err
	}
	c.run = begun
	c.run.start(ctx, c.run.pass, func(w *migration.Work) { w.PassedFenced = true })
	return nil
}

func (c *Conductor) holdOn(ctx context.Context, s seen) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if c.hold.since.IsZero() {
		c.hold.since = time.Now()
	}
	c.hold.doors, c.hold.drained = c.doors(*s.source), false
	writing, err := backend.Hold(ctx, c.hold.doors, holdLease)
	c.hold.writing, c.hold.asked = writing, err == nil
	if err != nil {
		return fmt.Errorf("hold writes: %w", err)
	}
	return nil
}

// settle copies the rest. What it takes too long for, the next pass lets go.
func (c *Conductor) settle(ctx context.Context, s seen) error {
	most := changeTimeout
	if !s.State.Phase.Fenced() {
		most = max(time.Second, migration.HoldMost-s.Hold.For)
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := c.run.drain(ctx); err != nil {
		return fmt.Errorf("copy the rest: %w", err)
	}
	if err := c.run.buckets.equal(ctx); err != nil {
		return err
	}
	c.countUploads(ctx)
	c.hold.drained = true
	return nil
}

// letGo lets writes go on before the phase is persisted: nobody is to wait for that.
func (c *Conductor) letGo(ctx context.Context, s seen, phase plan.Phase) error {
	c.hold.doors = c.doors(*s.source) // whoever was asked to hold, by this process or by one before
	c.release(ctx)
	c.hold = holding{rested: time.Now()}
	c.Board.Resume()
	return c.record(ctx, func(state *plan.MigrationState) *plan.MigrationState {
		if state != nil && !state.Phase.Fenced() {
			state.Phase, state.Since = phase, now()
		}
		return state
	})
}

func (c *Conductor) release(ctx context.Context) {
	if len(c.hold.doors) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := backend.Release(ctx, c.hold.doors); err != nil {
		log.FromContext(ctx).Info("a gateway did not hear that writes go on", "error", err.Error())
	}
}

// fence fences every door that is there, and holds writes, which tells how many are still on their way. A door that
// was not fenced may have let something in: what was proven is proven again.
func (c *Conductor) fence(ctx context.Context, s seen) error {
	c.Board.Suspend()
	for _, d := range s.Doors {
		if !d.Fenced && c.run != nil {
			c.run.forgetPass()
		}
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := backend.Fence(asking, c.doors(*s.source), ""); err != nil {
		return fmt.Errorf("fence the source: %w", err)
	}
	return c.holdOn(ctx, s)
}

func (r *run) forgetPass() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.work.PassedFenced = false
}

// forward sends everything that comes to the source on to the target, what waits there included.
func (c *Conductor) forward(ctx context.Context, s seen) error {
	to, err := c.service(ctx, s.State.Target)
	if err != nil {
		return err
	}
	doors := c.doors(*s.source)
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := backend.Fence(asking, doors, to); err != nil {
		return fmt.Errorf("let the source forward: %w", err)
	}
	c.hold.doors = doors
	c.release(ctx)
	c.hold = holding{}
	c.Board.Leave(s.State.Source)
	c.Board.Resume()
	c.Stop()
	return nil
}

// end forgets all that this process does for a migration.
func (c *Conductor) end(ctx context.Context, s seen) {
	c.release(ctx)
	if s.source != nil {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		for _, door := range c.doors(*s.source) {
			if err := backend.EndJournal(ctx, door); err != nil {
				log.FromContext(ctx).Info("a gateway goes on with its journal", "gateway", door.Name, "error", err.Error())
			}
		}
	}
	c.Stop()
	c.hold, c.uploads = holding{}, waiting{}
	c.Board.Leave("")
	c.Board.Resume()
}

// Stop ends the work that goes on in the background.
func (c *Conductor) Stop() {
	if c.run != nil {
		c.run.stop()
		c.run = nil
	}
}

// service is the URL of the gateways of one plane.
func (c *Conductor) service(ctx context.Context, plane string) (string, error) {
	name := names.PlaneGatewayService(plane)
	var service corev1.Service
	if err := c.Client.Get(ctx, key(name), &service); err != nil {
		return "", fmt.Errorf("read Service %s: %w", name, err)
	}
	for _, port := range service.Spec.Ports {
		if port.Name == names.ServingS3PortName && service.Spec.ClusterIP != "" {
			return "https://" + net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(port.Port))), nil
		}
	}
	return "", fmt.Errorf("Service %s has no address yet", name) //nolint:staticcheck // a kind's name
}

// ways are clients of both planes' S3: any replica of each, so that none of them is needed.
func (c *Conductor) ways(ctx context.Context, s seen) (from, to *s3.Client, err error) {
	if from, err = c.s3(ctx, *s.source); err != nil {
		return nil, nil, err
	}
	to, err = c.s3(ctx, *s.target)
	return from, to, err
}

func (c *Conductor) s3(ctx context.Context, s side) (*s3.Client, error) {
	url, err := c.service(ctx, s.plane.ID)
	if err != nil {
		return nil, err
	}
	id, secret := internalKey(s)
	return backend.S3(url, id, secret, s.http), nil
}

func internalKey(s side) (id, secret string) { return keys.InternalKey(s.seed) }

// replica is the admin port of a replica that serves; nil when none does.
func (c *Conductor) replica(s *side) *garage.Client {
	if s == nil {
		return nil
	}
	first, serves := s.first()
	if !serves {
		return nil
	}
	return c.admin(*s, first)
}
