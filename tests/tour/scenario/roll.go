package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/tour/ground"
)

// rollLimit is how long it may take to restart all replicas, each behind a proof.
const rollLimit = 15 * time.Minute

var errTooManyAway = errors.New("more than one replica was away at once")

func roll() Scenario {
	return Scenario{Name: "roll", About: "a changed template restarts the replicas one by one behind the gate", Play: rollAll}
}

func rollAll(ctx context.Context, g *ground.Ground) error {
	_, all, err := g.Restarted(ctx)
	if err != nil {
		return err
	}
	if err := g.Touch(ctx); err != nil {
		return err
	}
	return Rolled(ctx, g, all, all, func(context.Context, int, int) error { return nil })
}

// Rolled waits until so many of all replicas run the newest template, and watches that no two are away at once. Each
// look is told.
func Rolled(ctx context.Context, g *ground.Ground, enough, all int, look func(ctx context.Context, newest, ready int) error) error {
	fewest := all
	err := g.Await(ctx, stage.Wish{What: "the replicas to run the changed template", Limit: rollLimit, Look: func(ctx context.Context) (bool, string, error) {
		newest, ready, err := g.Restarted(ctx)
		if err != nil {
			return false, "", err
		}
		fewest = min(fewest, ready)
		if err := look(ctx, newest, ready); err != nil {
			return false, "", err
		}
		storage, err := g.Condition(ctx, "StorageReady") // it tells what the next one waits for
		return err == nil && newest >= enough, fmt.Sprintf("%d of %d replicas run it, %d are ready; %s", newest, all, ready, storage), err
	}})
	if err != nil {
		return err
	}
	if fewest < all-1 {
		return errTooManyAway
	}
	return nil
}
