package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/consumer"
	"github.com/deckhouse/system-s3/tests/tour/ground"
	"github.com/deckhouse/system-s3/tests/tour/load"
	"github.com/deckhouse/system-s3/tests/tour/scenario"
)

// blows of the tour that are short enough to be dealt in each run.
const blows = "kill-garage,kill-gateway,kill-controller,restart-all"

// survives is the short form of the tour (make tour): clients work while parts of the store are taken away.
func (*story) survives(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	g := &ground.Ground{Stage: site, Bucket: mainKey(), Dice: rand.New(rand.NewPCG(seed, 0))}
	played, unknown := scenario.Choose(blows)
	require.Empty(t, unknown)
	g.Dice.Shuffle(len(played), func(i, j int) { played[i], played[j] = played[j], played[i] })
	clients := work(t, g, "chaos/", seed)
	for _, each := range played {
		clients.Begin(each.Name)
		require.NoError(t, each.Play(t.Context(), g))
		require.NoError(t, awaitHealth(t.Context()))
		tellPhase(t, clients.Begin("rest"))
	}
	end(t, clients)
	require.NoError(t, site.AwaitBucket(t.Context(), mainKey(), moduleLimit))
}

// work sets clients to work below the prefix.
func work(t *testing.T, g *ground.Ground, prefix string, seed uint64) *load.Load {
	t.Helper()
	door, bucket, err := g.Door(t.Context())
	require.NoError(t, err)
	clients := load.New(load.Options{
		S3: door, Bucket: bucket, Prefix: fmt.Sprintf("%s%d/", prefix, seed), Seed: seed,
		Workers: 3, Pause: 100 * time.Millisecond, Keys: 40,
	})
	clients.Start(context.WithoutCancel(t.Context()))
	t.Cleanup(clients.Stop)
	return clients
}

// end ends the clients' work: nothing that was acknowledged is lost, wrong or back.
func end(t *testing.T, clients *load.Load) {
	t.Helper()
	clients.Stop()
	found, err := clients.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
	t.Logf("%d objects of %d keys are as they were acknowledged", len(clients.Present()), clients.Keys())
}

func tellPhase(t *testing.T, p load.Phase) {
	t.Helper()
	t.Logf("%s: %d requests, %d failed, %d retried, longest stall %.1f s %s", p.Name, p.Requests, p.Failed, p.Retried, p.Stall.Seconds(), p.Told())
}

func (s *story) startsNow(t *testing.T) {
	c := allow(t, "aws-cli", names.ReadSubresource, names.WriteSubresource)
	c.Image, c.Args = s.push(t).cli, []string{consumer.CopyScript}
	require.Contains(t, run(t, c), "both files are the same")
}
