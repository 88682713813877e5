package s3

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// bufferSize bounds what one answer holds in memory.
	bufferSize = 128 << 10

	// drainLimit and drainTimeout bound what is taken in only to be able to answer an error.
	drainLimit   = 16 << 20
	drainTimeout = 5 * time.Second
)

// errStalled is why a request was given up.
var errStalled = errors.New("no byte moved for too long")

// errClosed is what the transport gets when it goes on reading a body that is not wanted any more.
var errClosed = errors.New("the request body is closed")

// buffers are shared by all answers.
//
//nolint:gochecknoglobals // a pool is shared by its nature
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// watchdog gives up a request on which no byte has moved for too long. There is no limit on the whole: an upload may
// take hours as long as it moves.
type watchdog struct {
	timeout time.Duration
	client  *http.ResponseController

	mu      sync.Mutex
	timer   *time.Timer
	cancel  context.CancelCauseFunc
	stopped bool
}

func newWatchdog(timeout time.Duration, client *http.ResponseController) *watchdog {
	return &watchdog{timeout: timeout, client: client}
}

// guard makes the watchdog cancel the context, too, when it barks.
func (w *watchdog) guard(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel = cancel
	return ctx, cancel
}

// moved tells that a byte moved, or that one is expected from now on.
func (w *watchdog) moved() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.stopped:
	case w.timer == nil:
		w.timer = time.AfterFunc(w.timeout, w.bark)
	default:
		w.timer.Reset(w.timeout)
	}
}

// pause stops watching until the next byte: it is Garage's turn, and the transport bounds that.
func (w *watchdog) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

// bark unblocks whatever waits for the client or for Garage.
func (w *watchdog) bark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	if w.cancel != nil {
		w.cancel(errStalled)
	}
	past := time.Unix(1, 0)
	_ = w.client.SetReadDeadline(past)  // a connection that is gone waits for nothing
	_ = w.client.SetWriteDeadline(past) //
}

// upload is the client's body as it comes from the wire.
type upload struct {
	source   io.ReadCloser
	watchdog *watchdog
	expects  bool // the client waits for our leave before it sends

	read   atomic.Int64
	begun  atomic.Bool
	ended  atomic.Bool
	closed atomic.Bool
}

// Read reads from the client, which must not stall.
func (u *upload) Read(p []byte) (int, error) {
	if u.closed.Load() {
		return 0, errClosed
	}
	u.begun.Store(true)
	u.watchdog.moved()
	n, err := u.source.Read(p)
	u.read.Add(int64(n))
	if err != nil {
		u.ended.Store(true)
		u.watchdog.pause()
	}
	return n, err
}

// Close only marks the end of interest; the server closes the client's body itself. A Read under way ends with the
// next byte or with the watchdog.
func (u *upload) Close() error {
	u.closed.Store(true)
	return nil
}

// drain takes in what the client is still sending, within bounds, so that it gets to read the answer instead of a
// reset connection. A client that waits for our leave is spared.
func (u *upload) drain(w http.ResponseWriter) {
	u.closed.Store(true)
	if u.ended.Load() || (u.expects && !u.begun.Load()) {
		return
	}
	u.watchdog.stop()
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(drainTimeout)) != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, u.source, drainLimit); errors.Is(err, io.EOF) {
		u.ended.Store(true)
		_ = control.SetReadDeadline(time.Time{}) // fails only with the connection
	}
}

// pump copies the answer, telling the watchdog. The errors of both sides are told apart: an answer that breaks off on
// Garage's side must not look complete.
func pump(dst io.Writer, src io.Reader, w *watchdog) (readErr, writeErr error) {
	buffer, _ := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	for {
		w.moved()
		n, readErr := src.Read(buffer[:])
		if n > 0 {
			w.moved()
			if _, writeErr := dst.Write(buffer[:n]); writeErr != nil {
				return nil, writeErr
			}
		}
		if errors.Is(readErr, io.EOF) {
			return nil, nil
		}
		if readErr != nil {
			return readErr, nil
		}
	}
}
