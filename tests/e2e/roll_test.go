package e2e

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/tour/ground"
	"github.com/deckhouse/system-s3/tests/tour/scenario"
)

// rolls changes the template of the replicas while clients work: the controller restarts one after the other, each
// only after the proof that the others hold everything. Of three it waits for two, which is the first proof and the
// second; the last one is restarted while the story goes on.
func (*story) rolls(t *testing.T) {
	// Less than what is left of the suite's time: a failure is to be explained.
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	seed := uint64(time.Now().UnixNano())
	g := &ground.Ground{Stage: site, Bucket: mainKey(), Dice: rand.New(rand.NewPCG(seed, 0))}
	clients := work(t, g, "roll/", seed)
	clients.Begin("roll")
	require.NoError(t, g.Touch(ctx))
	enough := max(1, wantedReplicas()-1)
	require.NoError(t, scenario.Rolled(ctx, g, enough, wantedReplicas(), func(context.Context, int, int) error { return nil }))
	tellPhase(t, clients.Begin("rest"))
	end(t, clients)
}
