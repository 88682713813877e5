package gate

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/gateway/internal/volume"
	"github.com/deckhouse/system-s3/lib/access"
)

var (
	write = access.Operation{Name: "PutObject", Kind: access.Pass, Need: access.Write}
	read  = access.Operation{Name: "GetObject", Kind: access.Pass, Need: access.Read}
	erase = access.Operation{Name: "DeleteObject", Kind: access.Pass, Need: access.Write}
)

const waitLimit = 10 * time.Second

// entering enters in the background.
func entering(t *testing.T, g *Gate, op access.Operation) chan *Pass {
	t.Helper()
	entered := make(chan *Pass, 1)
	go func() {
		if pass, err := g.Enter(context.WithoutCancel(t.Context()), op, 0); err == nil {
			entered <- pass
		}
	}()
	return entered
}

func wait(t *testing.T, entered chan *Pass) {
	t.Helper()
	select {
	case pass := <-entered:
		pass.Leave()
	case <-time.After(waitLimit):
		t.Fatal("it does not enter")
	}
}

func TestHeldWritesWaitAndReadsDoNot(t *testing.T) {
	g := &Gate{}
	running, err := g.Enter(t.Context(), write, 1)
	require.NoError(t, err)
	require.Equal(t, 1, g.Hold(time.Minute), "a write is still on its way")
	reading, err := g.Enter(t.Context(), read, 0)
	require.NoError(t, err)
	held, erased := entering(t, g, write), entering(t, g, erase)
	running.Leave()
	running.Leave()
	require.Zero(t, g.Hold(time.Minute))
	require.Empty(t, held)
	require.Empty(t, erased, "deletes change the store, too")
	writing, left := g.State()
	require.Zero(t, writing)
	require.Greater(t, left, 30*time.Second)
	g.Release()
	wait(t, held)
	wait(t, erased)
	_, left = g.State()
	require.Zero(t, left)
	reading.Leave()
	require.Zero(t, g.Running())
}

func TestAHoldEndsByItself(t *testing.T) {
	g := &Gate{}
	g.Hold(time.Minute)
	held := entering(t, g, write)
	g.Hold(10 * time.Millisecond) // whoever asked for it is gone
	wait(t, held)
	g.Release() // changes nothing
	g.Hold(time.Minute)
	held = entering(t, g, write)
	g.Release()
	wait(t, held)
}

func TestAClientThatLeavesIsNotHeld(t *testing.T) {
	g := &Gate{}
	g.Hold(time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := g.Enter(ctx, write, 1)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, g.Running())
}

func TestIdleIsWhenTheLastHasLeft(t *testing.T) {
	g := &Gate{}
	require.NoError(t, g.WaitIdle(t.Context()))
	pass, err := g.Enter(t.Context(), read, 0)
	require.NoError(t, err)
	idle := make(chan error, 1)
	go func() { idle <- g.WaitIdle(context.WithoutCancel(t.Context())) }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, g.WaitIdle(ctx), context.DeadlineExceeded)
	pass.Leave()
	require.NoError(t, <-idle)
}

// space is a volume that is full.
type space struct{}

func (space) Admit(int64) (*volume.Share, error) { return nil, access.ErrInsufficient }

func TestAFullVolumeTakesOnlyWhatFrees(t *testing.T) {
	g := &Gate{Space: space{}}
	_, err := g.Enter(t.Context(), write, 1)
	require.ErrorIs(t, err, access.ErrInsufficient)
	require.Zero(t, g.Running(), "what is refused is not on its way")
	for _, op := range []access.Operation{read, erase} {
		pass, err := g.Enter(t.Context(), op, 0)
		require.NoError(t, err)
		require.NoError(t, pass.Moved(1))
		pass.Leave()
	}
}

// What is held is meant for what comes after this gateway: it must not reach the store that is being left.
func TestAGatewayThatStopsRefusesWhatItHolds(t *testing.T) {
	g := &Gate{}
	g.Stop()
	pass, err := g.Enter(t.Context(), write, 1)
	require.NoError(t, err, "nothing is held, so writes are finished as ever")
	pass.Leave()

	g = &Gate{}
	g.Hold(time.Minute)
	refused := make(chan error, 1)
	go func() {
		_, err := g.Enter(context.WithoutCancel(t.Context()), write, 1)
		refused <- err
	}()
	g.Stop()
	g.Stop()
	require.ErrorIs(t, <-refused, access.ErrSlowDown)
	_, err = g.Enter(t.Context(), write, 1)
	require.ErrorIs(t, err, access.ErrSlowDown, "and whoever comes later")
}
