package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// readers is how many objects are read back at once.
	readers = 4
	// patience is for how long questions without an answer are asked again: a store that is well answers at once.
	patience = time.Minute
	again    = time.Second
	// limit of a check, far more than it takes.
	limit = 10 * time.Minute
)

var (
	errSlow  = errors.New("it took longer than ten minutes")
	errStale = errors.New("the listing is not what was acknowledged")
)

// Check reads everything back, also what was deleted, and lists, and returns what was found since the last time. The
// workers must be at rest. The error means that the store could not be asked at all.
func (l *Load) Check(ctx context.Context) ([]Finding, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
	defer cancel()
	deadline := time.Now().Add(l.patience)
	group, groupContext := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, key := range l.ledger.keys() {
		group.Go(func() error {
			l.readBack(groupContext, deadline, key)
			return context.Cause(groupContext)
		})
	}
	if err := group.Wait(); err != nil {
		return l.takeFindings(), fmt.Errorf("read everything back: %w", err)
	}
	if err := l.listAll(ctx, deadline); err != nil {
		return l.takeFindings(), fmt.Errorf("list in the end: %w", err)
	}
	return l.takeFindings(), nil
}

// listAll lists until the listing is right. Nobody writes any more, so few replicas lag behind for long; one that was
// away may go on showing what is gone until Garage compares its tables, every ten minutes. What is listed and cannot be
// read, as readBack has found, is counted; an object that is not listed is lost.
func (l *Load) listAll(ctx context.Context, deadline time.Time) error {
	var (
		listed     map[string]bool
		deviations []*Finding
	)
	err := insist(ctx, deadline, func(ctx context.Context) error {
		var err error
		if listed, err = l.list(ctx, l.options.Prefix); err != nil {
			return err
		}
		if deviations = l.deviations(l.options.Prefix, listed); len(deviations) > 0 {
			return errStale
		}
		return nil
	})
	for _, f := range deviations {
		if f.Kind != Resurrected {
			l.tell(f)
			continue
		}
		l.mu.Lock()
		l.phase.Stale++
		l.mu.Unlock()
	}
	if errors.Is(err, errStale) {
		return nil
	}
	return err
}

// readBack reads one key until the store says what there is.
func (l *Load) readBack(ctx context.Context, deadline time.Time, key string) {
	var got found
	err := insist(ctx, deadline, func(ctx context.Context) error {
		var err error
		got, err = l.get(ctx, key)
		return err
	})
	if ctx.Err() != nil {
		return // given up, which proves nothing
	}
	if err != nil {
		l.tell(&Finding{Kind: Unreadable, Key: key, Story: err.Error()})
		return
	}
	l.tell(l.ledger.read(key).judge(l.options.Seed, key, got))
}

// insist asks until there is an answer or the deadline is over.
func insist(ctx context.Context, deadline time.Time, ask func(context.Context) error) error {
	for {
		err := ask(ctx)
		if err == nil || ctx.Err() != nil || !time.Now().Before(deadline) {
			return err
		}
		timer := time.NewTimer(again)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}
