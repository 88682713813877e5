// Package gate decides whether a request may go on to Garage now, and counts those that are on their way. Every request
// to Garage passes it, so that whatever holds or refuses writes has one place to do it: the hold while the store moves
// to another class, and the guard of the last free space.
package gate

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/deckhouse/system-s3/images/gateway/internal/volume"
	"github.com/deckhouse/system-s3/lib/access"
)

// Space keeps room on the volume for a write.
type Space interface {
	Admit(length int64) (*volume.Share, error)
}

// ErrElsewhere means that the store has moved, and the request is for where it is now.
var ErrElsewhere = errors.New("the store has moved")

// fencePatience is how long a write waits at a fence before its client is told to come again.
const fencePatience = time.Minute

// Gate is open to everything until it is told otherwise. Safe for concurrent use.
type Gate struct {
	Space Space // nil when room is no matter

	mu      sync.Mutex
	running int
	writing int
	idle    chan struct{} // closed when running gets 0 while someone waits
	held    chan struct{} // closed when the hold ends; nil when there is none
	until   time.Time     // when it ends by itself
	timer   *time.Timer
	fenced  bool          // no write gets through any more
	moved   bool          // nothing gets through any more
	end     chan struct{} // closed when the gateway stops
	leave   chan struct{} // closed when the store has moved
}

// Pass is a request on its way. It is for one goroutine.
type Pass struct {
	gate   *Gate
	share  *volume.Share
	writes bool
	left   bool
}

// Enter admits a request whose body has so many bytes, -1 when nobody knows. It waits while writes are held. Leave must
// be called when the request is over. The error is an access.Error, ErrElsewhere or the context's.
func (g *Gate) Enter(ctx context.Context, op access.Operation, length int64) (*Pass, error) {
	pass := &Pass{gate: g, writes: op.Writes()}
	if err := g.count(ctx, pass.writes); err != nil {
		return nil, err
	}
	if g.Space == nil || !pass.writes || op.Frees() {
		return pass, nil
	}
	share, err := g.Space.Admit(max(length, 0))
	if err != nil {
		pass.Leave()
		return nil, err
	}
	pass.share = share
	return pass, nil
}

// Wait waits while writes are held, as Enter does, and counts nothing.
func (g *Gate) Wait(ctx context.Context) error {
	return g.wait(ctx, true, func() {})
}

// count counts the request in as soon as it is not held.
func (g *Gate) count(ctx context.Context, writes bool) error {
	return g.wait(ctx, writes, func() {
		g.running++
		if writes {
			g.writing++
		}
	})
}

// wait calls enter, with the lock, as soon as nothing holds the request.
func (g *Gate) wait(ctx context.Context, writes bool, enter func()) error {
	var patience <-chan time.Time // with a fence
	for {
		entered, obstacle := g.try(writes, enter)
		if entered {
			return nil
		}
		if obstacle.fenced && patience == nil {
			patience = time.After(fencePatience)
		}
		select {
		case <-obstacle.leave:
			return ErrElsewhere
		case <-obstacle.held:
		case <-patience:
			return access.ErrSlowDown
		case <-obstacle.end:
			return access.ErrSlowDown
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// obstacle is what a request waits for: that one of the channels closes.
type obstacle struct {
	held, leave, end <-chan struct{}
	fenced           bool
}

// try calls enter, with the lock, if nothing holds the request; else it tells what does.
func (g *Gate) try(writes bool, enter func()) (entered bool, _ obstacle) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.moved && (!writes || g.held == nil && !g.fenced) {
		enter()
		return true, obstacle{}
	}
	return false, obstacle{held: g.held, leave: channel(&g.leave), end: channel(&g.end), fenced: g.fenced}
}

// Moved tells that the client has sent so many bytes more. The error, an access.Error, means that the write must end.
func (p *Pass) Moved(n int64) error { return p.share.Moved(n) }

// Leave ends the pass. A second call does nothing.
func (p *Pass) Leave() {
	if p.left {
		return
	}
	p.left = true
	p.share.Done()
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if p.writes {
		g.writing--
	}
	if g.running == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// Hold makes new writes wait for so long, from now, unless Release comes before. The hold ends by itself, so that a
// controller that dies stops nobody. It returns how many writes are still on their way.
func (g *Gate) Hold(lasting time.Duration) (writing int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == nil {
		g.held = make(chan struct{})
	} else {
		g.timer.Stop()
	}
	held := g.held
	g.until = time.Now().Add(lasting)
	g.timer = time.AfterFunc(lasting, func() { g.expire(held) })
	return g.writing
}

// Stop refuses writes that are held, now and from now on: a hold is for what comes after this gateway.
func (g *Gate) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != nil {
		g.timer.Stop()
	}
	shut(channel(&g.end))
}

// channel makes the channel when it is needed first.
func channel(c *chan struct{}) chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

// shut closes a channel that may be closed already.
func shut(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// Move lets nothing through any more and sends elsewhere what is held. There is no way back.
func (g *Gate) Move() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fenced, g.moved = true, true
	shut(channel(&g.leave))
}

// Fence lets no new write through any more, whatever becomes of a hold. There is no way back.
func (g *Gate) Fence() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fenced = true
}

// Release lets writes in again.
func (g *Gate) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open()
}

// expire ends a hold that was not prolonged while its timer was going off.
func (g *Gate) expire(held chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == held && !time.Now().Before(g.until) {
		g.open()
	}
}

func (g *Gate) open() {
	if g.held != nil {
		g.timer.Stop()
		close(g.held)
		g.held = nil
	}
}

// State tells how many writes are on their way and how long new ones will be held at most, 0 when they are not.
func (g *Gate) State() (writing int, held time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != nil {
		held = max(time.Until(g.until), 0)
	}
	return g.writing, held
}

// WaitIdle returns when no request is on its way, or with the context's error.
func (g *Gate) WaitIdle(ctx context.Context) error {
	g.mu.Lock()
	if g.running == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Running is how many requests are on their way.
func (g *Gate) Running() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}
