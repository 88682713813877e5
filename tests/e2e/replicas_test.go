//go:build placement

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/tour/ground"
)

// TestReplicas changes the number of replicas of a store that clients work with: one, three, and one again, each on the
// same data; and it is called back in the middle. Nothing that was acknowledged is lost, wrong or back.
func TestReplicas(t *testing.T) {
	s := &placing{story{ledger: &ledger{}}}
	cast(t, master, master, master)
	s.begins(t, one())
	require.NoError(t, site.AwaitBucket(t.Context(), mainKey(), storeLimit))

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	g := &ground.Ground{Stage: site, Bucket: mainKey(), Dice: rand.New(rand.NewPCG(seed, 0))}
	clients := work(t, g, "replicas/", seed)
	clients.Begin("one replica")
	pause(t.Context(), 10*time.Second)
	for _, step := range []struct {
		name   string
		on     bool
		copies int
	}{{"one to three", true, 3}, {"three to one", false, 1}} {
		tellPhase(t, clients.Begin(step.name))
		require.NoError(t, site.Configure(t.Context(), true, map[string]any{"highAvailability": step.on, "logLevel": "Debug"}))
		awaitCopies(t, step.copies)
		tellPhase(t, clients.Begin("rest"))
		pause(t.Context(), 5*time.Second)
	}
	end(t, clients)
	require.NoError(t, site.AwaitBucket(t.Context(), mainKey(), moduleLimit))
}

// awaitCopies waits until the store has so many replicas and volumes, and nothing is left to do.
func awaitCopies(t *testing.T, copies int) {
	t.Helper()
	told := ""
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: fmt.Sprintf("%d replicas", copies), Limit: 2 * storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		sets, err := garageSets(ctx)
		if err != nil || len(sets) != 1 {
			return false, fmt.Sprintf("%d StatefulSets", len(sets)), err
		}
		found, err := claims(ctx)
		if err != nil {
			return false, "", err
		}
		migration, err := site.Condition(ctx, migrationReady)
		if err != nil {
			return false, "", err
		}
		ready, err := site.Condition(ctx, storageReady)
		if line := fmt.Sprintf("%s %s; %s", migration.Reason, ready.Reason, sets[0].Annotations["system-s3.deckhouse.io/epoch"]); line != told {
			told = line
			t.Log(time.Now().Format(time.TimeOnly), line, migration.Message)
		}
		done := len(found) == copies && int(*sets[0].Spec.Replicas) == copies && migration.Reason == plan.ReasonNotNeeded &&
			ready.Reason == plan.ReasonReady && sets[0].Annotations["system-s3.deckhouse.io/replication-factor"] == fmt.Sprint(copies)
		return done, fmt.Sprintf("%v; %s; %s", found, migration, ready), err
	}}))
}
