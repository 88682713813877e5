package volume

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/deckhouse/system-s3/lib/access"
)

const (
	// reopening is the part of the reserve, beyond it, that must be free before writes are let in again: without it the
	// guard would change its mind with every delete.
	reopening = 4
	// overhead is what a write takes besides its bytes: metadata and the last block of a file system.
	overhead      = 64 << 10
	overheadShare = 128
	// unwritten is how much of what a request has sent may still be on its way to the disk: Garage takes in four blocks
	// of a MiB at once, and on a slow disk the buffers of both ends of the connection to it, 4 and 6 MiB, are full, too.
	unwritten = 16 << 20
	// lookEvery is after how many bytes of a write the volume is looked at again.
	lookEvery = 1 << 20
)

// Peers tells the volumes of the other replicas, on which every write lands, too. What it tells may be as old as the
// question before.
type Peers func(ctx context.Context) ([]Space, error)

// Guard refuses writes that could fill a volume. Safe for concurrent use.
type Guard struct {
	Measure func() (Space, error) // this replica's volume
	Peers   Peers
	Log     *zap.Logger

	outstanding atomic.Int64 // bytes of admitted writes that may not be on the disk yet

	mu     sync.Mutex
	closed bool
	peers  []Space
	// asked is what was free here when the peers were asked last, earlier the time before. What was written since has
	// taken as much of their volumes as of this one.
	asked, earlier uint64
}

// Status is what the guard knows.
type Status struct {
	Space

	Reserve  uint64 `json:"reserve"`
	Refusing bool   `json:"refusing"` // whether writes are refused
}

// Status measures.
func (g *Guard) Status() (Status, error) {
	space, err := g.Measure()
	if err != nil {
		return Status{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.judge(g.room(space))
	return Status{Space: space, Reserve: space.Reserve(), Refusing: g.closed}, nil
}

// Admit lets a write of so many bytes in, of which its share of the room is kept until it is done, or refuses it with an
// access.Error.
func (g *Guard) Admit(length int64) (*Share, error) {
	space, err := g.Measure()
	if err != nil {
		return nil, errors.Join(access.ErrServiceUnavailable, err)
	}
	need := length + length/overheadShare + overhead
	g.mu.Lock()
	defer g.mu.Unlock()
	room, fullest := g.room(space)
	g.judge(room, fullest)
	if g.closed || g.outstanding.Load()+need > room {
		return nil, refusal(g.closed, fullest, length)
	}
	g.outstanding.Add(need)
	return &Share{guard: g, kept: need}, nil
}

func refusal(closed bool, fullest Space, length int64) access.Error {
	free := fmt.Sprintf("of the %s of a replica, about %s are free, and %s are kept for deletes", mebibytes(fullest.Total),
		mebibytes(fullest.Free), mebibytes(fullest.Reserve()))
	const rest = ". Reads and deletes go on; writes resume by themselves when the volumes have grown or objects were deleted."
	if !closed {
		return access.ErrInsufficient.With(fmt.Sprintf("The store has no room for %s more: %s, less what running uploads have announced"+rest,
			mebibytes(uint64(length)), free)) //nolint:gosec // lengths are positive
	}
	return access.ErrInsufficient.With("The store is full: " + free + rest)
}

func mebibytes(bytes uint64) string {
	const mib = 1 << 20
	return fmt.Sprintf("%d MiB", (bytes+mib-1)/mib)
}

// room is that of the fullest volume.
func (g *Guard) room(own Space) (room int64, fullest Space) {
	room, fullest = own.room(), own
	for _, peer := range g.peers {
		peer.Free = g.estimate(peer, own)
		if peer.room() < room {
			room, fullest = peer.room(), peer
		}
	}
	return room, fullest
}

// estimate is what a peer may have free by now: what was written here since was written there, too.
func (g *Guard) estimate(peer, own Space) uint64 {
	if g.earlier <= own.Free {
		return peer.Free
	}
	return peer.Free - min(peer.Free, g.earlier-own.Free)
}

// judge closes the guard at the reserve and opens it a way from it.
func (g *Guard) judge(room int64, fullest Space) {
	switch {
	case !g.closed && room < 0:
		g.closed = true
		g.Log.Warn("a volume is full: writes are refused", zap.Uint64("free", fullest.Free), zap.Uint64("total", fullest.Total))
	case g.closed && room >= int64(fullest.Reserve()/reopening): //nolint:gosec // a small number
		g.closed = false
		g.Log.Info("there is room again: writes go on", zap.Uint64("free", fullest.Free), zap.Uint64("total", fullest.Total))
	}
}

// askTimeout is for all answers together: Garage, which knows who the peers are, may be busy.
const askTimeout = 10 * time.Second

// Watch asks for the peers' volumes every period until the context ends. What was told last counts while they are silent.
func (g *Guard) Watch(ctx context.Context, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		if err := g.ask(asking); err != nil {
			g.Log.Debug("the volumes of the other replicas are not known", zap.Error(err))
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (g *Guard) ask(ctx context.Context) error {
	own, err := g.Measure()
	if err != nil {
		return err
	}
	peers, err := g.Peers(ctx)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.earlier = g.asked; g.asked == 0 {
		g.earlier = own.Free
	}
	g.asked, g.peers = own.Free, peers
	return nil
}

// enough tells whether running writes may go on: half of the reserve is left for what no gateway has announced to
// another, and for what Garage writes by itself.
func (g *Guard) enough() bool {
	own, err := g.Measure()
	if err != nil {
		return true // as it was when the write was let in
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	room, fullest := g.room(own)
	return room+int64(fullest.Reserve()/2) > 0 //nolint:gosec // a small number
}

// Share is the room that is kept for one write. It is for one goroutine; a nil share is of a write that takes no room.
type Share struct {
	guard    *Guard
	kept     int64
	received int64
	written  int64 // of received, what is surely on the disk
	looked   int64 // of received, when the volume was looked at
}

// Moved tells that the client has sent so many bytes more. The error, an access.Error, means that the write must not go
// on.
func (s *Share) Moved(n int64) error {
	if s == nil {
		return nil
	}
	s.received += n
	if s.received-s.looked >= lookEvery {
		s.looked = s.received
		if !s.guard.enough() {
			return access.ErrInsufficient
		}
	}
	if sure := s.received - unwritten; sure-s.written >= overhead {
		s.give(sure - s.written)
		s.written = sure
	}
	return nil
}

// Done gives back what is left.
func (s *Share) Done() {
	if s != nil {
		s.give(s.kept)
	}
}

func (s *Share) give(bytes int64) {
	bytes = min(bytes, s.kept)
	s.kept -= bytes
	s.guard.outstanding.Add(-bytes)
}
