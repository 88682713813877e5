package volume

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/deckhouse/system-s3/lib/access"
)

const gib, mib = 1 << 30, 1 << 20

// world is volumes as a test wants them.
type world struct {
	own   Space
	peers []Space
	fails error
}

func (w *world) guard() *Guard {
	return &Guard{
		Measure: func() (Space, error) { return w.own, w.fails },
		Peers:   func(context.Context) ([]Space, error) { return w.peers, nil },
		Log:     zap.NewNop(),
	}
}

func (w *world) free(bytes int) *world {
	w.own = Space{Total: 100 * gib, Free: uint64(bytes)}
	return w
}

func TestTheReserve(t *testing.T) {
	cases := map[string]struct {
		reason      string
		total, want uint64
	}{
		"a small volume":   {"metadata does not shrink with the volume", gib, 256 * mib},
		"the least volume": {"it grows below 5 % free, before the reserve is touched", 10 * gib, 10 * gib / 33},
		"a usual volume":   {"", 100 * gib, 100 * gib / 33},
		"a huge volume":    {"metadata does not grow with the volume", 10 << 40, 4 * gib},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, Space{Total: c.total}.Reserve(), c.reason)
			require.Less(t, Space{Total: max(c.total, 10*gib)}.Reserve(), max(c.total, 10*gib)/20)
		})
	}
}

func TestParallelUploadsCannotOvershoot(t *testing.T) {
	w := (&world{}).free(100*gib/33 + 100*mib)
	g := w.guard()
	var shares []*Share
	for {
		share, err := g.Admit(10 * mib)
		if err != nil {
			require.ErrorIs(t, err, access.ErrInsufficient)
			break
		}
		shares = append(shares, share)
	}
	require.Len(t, shares, 9, "the room is for nine with what they cost")
	_, err := g.Admit(mib)
	require.NoError(t, err, "a small one still fits: the volume is not full")
	shares[0].Done()
	shares[0].Done()
	share, err := g.Admit(10 * mib)
	require.NoError(t, err, "what has failed gives its room back")
	share.Done()
}

func TestARunningUploadIsNotCountedTwice(t *testing.T) {
	w := (&world{}).free(100*gib/33 + 100*mib)
	g := w.guard()
	share, err := g.Admit(90 * mib)
	require.NoError(t, err)
	_, err = g.Admit(50 * mib)
	require.ErrorIs(t, err, access.ErrInsufficient)
	require.NoError(t, share.Moved(80*mib))
	w.own.Free -= 10 * mib // somebody else's deletes have made room
	_, err = g.Admit(50 * mib)
	require.NoError(t, err, "what is on the disk is not announced any more")
}

func TestAFullVolumeRefusesUntilThereIsRoomAgain(t *testing.T) {
	reserve := 100 * gib / 33
	w := (&world{}).free(reserve - 1)
	g := w.guard()
	_, err := g.Admit(0)
	require.ErrorIs(t, err, access.ErrInsufficient)
	require.ErrorContains(t, err, "writes resume by themselves")
	w.free(reserve + reserve/8)
	_, err = g.Admit(0)
	require.ErrorIs(t, err, access.ErrInsufficient, "it does not change its mind with every delete")
	status, err := g.Status()
	require.NoError(t, err)
	require.True(t, status.Refusing)
	w.free(reserve + reserve/4)
	_, err = g.Admit(0)
	require.NoError(t, err)

	w.own.Files, w.own.FreeFiles = 1_000_000, 999
	_, err = g.Admit(0)
	require.ErrorIs(t, err, access.ErrInsufficient, "a volume without room for files is full, too")
	w.fails = errors.New("I/O error")
	_, err = g.Admit(0)
	require.ErrorIs(t, err, access.ErrServiceUnavailable, "what cannot be measured is not empty; the client may try again")
}

func TestTheFullestReplicaCounts(t *testing.T) {
	w := (&world{}).free(50 * gib)
	roomy := w.own
	g := w.guard()
	w.peers = []Space{roomy, {Total: 10 * gib, Free: 400 * mib}}
	require.NoError(t, g.ask(t.Context()))
	require.NoError(t, g.ask(t.Context()))
	_, err := g.Admit(200 * mib)
	require.ErrorContains(t, err, "no room for 200 MiB", "the peer keeps 311 MiB of its 400")
	share, err := g.Admit(20 * mib)
	require.NoError(t, err)
	share.Done()
	w.own.Free -= 95 * mib
	_, err = g.Admit(0)
	require.ErrorContains(t, err, "The store is full", "what was written here was written there")
	w.peers = []Space{roomy, roomy}
	require.NoError(t, g.ask(t.Context()))
	_, err = g.Admit(0)
	require.NoError(t, err)
}

func TestARunningUploadEndsBeforeTheVolumeIsFull(t *testing.T) {
	reserve := 100 * gib / 33
	w := (&world{}).free(2 * reserve)
	share, err := w.guard().Admit(gib)
	require.NoError(t, err)
	w.free(reserve * 3 / 4)
	require.NoError(t, share.Moved(2*mib), "it may use a part of the reserve: others have filled the volume")
	w.free(reserve / 3)
	require.NoError(t, share.Moved(mib/2), "not every byte is worth a look")
	require.ErrorIs(t, share.Moved(mib), access.ErrInsufficient)
	share.Done()
	var none *Share
	require.NoError(t, none.Moved(1))
	none.Done()
}
