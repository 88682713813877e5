// Package gate decides whether a request may go on to Garage now, and counts those that are on their way. Every request
// to Garage passes it, so that whatever holds or refuses writes has one place to do it.
package gate

import (
	"context"
	"sync"

	"github.com/deckhouse/system-s3/lib/access"
)

// Gate is open to everything until it is closed. Safe for concurrent use.
type Gate struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when running gets 0 while someone waits
}

// Enter admits a request; leave must be called once when it is over. The error is an access.Error.
func (g *Gate) Enter(_ access.Operation) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running++
	return sync.OnceFunc(g.leave), nil
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.running == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
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
