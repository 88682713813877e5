package stage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const glance = 500 * time.Millisecond

var errTooLong = errors.New("it took too long")

// Wish is something to wait for.
type Wish struct {
	// What is waited for, in words that follow "waiting for".
	What string
	// Limit is how long.
	Limit time.Duration
	// Look has one look: whether the wish is fulfilled, and what is seen. An error of it is seen too: nothing is final
	// while a cluster settles.
	Look func(ctx context.Context) (bool, string, error)
}

// Await waits until the wish is fulfilled and tells what changes meanwhile. The error says what was seen last.
func (s *Stage) Await(ctx context.Context, wish Wish) error {
	ctx, cancel := context.WithTimeoutCause(ctx, wish.Limit, errTooLong)
	defer cancel()
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	for last := ""; ; {
		var done bool
		if done, last = s.look(ctx, wish, last); done {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w after %s; last seen: %s", wish.What, context.Cause(ctx), wish.Limit, last)
		}
	}
}

// look has one look and tells what is new.
func (s *Stage) look(ctx context.Context, wish Wish, last string) (bool, string) {
	done, seen, err := wish.Look(ctx)
	if ctx.Err() != nil && !done {
		return false, last // what is seen now is only that time is up
	}
	if err != nil {
		seen = err.Error()
	}
	if seen != "" && seen != last {
		s.Sayf("    %s", seen)
		last = seen
	}
	return done && err == nil, last
}
