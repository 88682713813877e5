package s3

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// leastRate is how slow a client may send, in bytes per second, measured over the stall timeout: slower is a client
	// that only wants to hold a connection.
	leastRate = 1 << 10
	// looks is how often the watchdog looks within the timeout.
	looks = 4
)

// errStalled is why a request was given up.
var errStalled = errors.New("too little has moved for too long")

// watchdog gives up a request on which too little has moved for too long. There is no limit on the whole: an upload may
// take hours as long as it moves.
type watchdog struct {
	timeout time.Duration
	client  *http.ResponseController

	moved   atomic.Int64 // bytes since the last look
	sending atomic.Bool  // the client is sending, so a byte now and then is not enough
	resting atomic.Bool  // it is Garage's turn, and the transport bounds that

	mu     sync.Mutex
	timer  *time.Timer // nil before guard and after stop
	cancel context.CancelCauseFunc
	good   time.Time // when enough had moved last
}

func newWatchdog(timeout time.Duration, client *http.ResponseController) *watchdog {
	w := &watchdog{timeout: timeout, client: client}
	w.resting.Store(true) // until the client sends or is sent something
	return w
}

// guard begins to watch; the context ends when the watchdog barks.
func (w *watchdog) guard(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel, w.good = cancel, time.Now()
	w.timer = time.AfterFunc(w.timeout/looks, w.look)
	return ctx, cancel
}

// stop ends the watch.
func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

func (w *watchdog) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	least := int64(1)
	if w.sending.Load() {
		least = max(least, int64(leastRate*(w.timeout/looks).Seconds()))
	}
	now := time.Now()
	if moved := w.moved.Swap(0); moved >= least || w.resting.Load() {
		w.good = now
	}
	if now.Sub(w.good) >= w.timeout {
		w.bark()
		return
	}
	w.timer.Reset(w.timeout / looks)
}

// bark unblocks whatever waits for the client or for Garage.
func (w *watchdog) bark() {
	w.timer = nil
	w.cancel(errStalled)
	past := time.Unix(1, 0)
	_ = w.client.SetReadDeadline(past)  // a connection that is gone waits for nothing
	_ = w.client.SetWriteDeadline(past) //
}
