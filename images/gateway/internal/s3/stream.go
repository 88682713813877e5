package s3

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deckhouse/system-s3/images/gateway/internal/gate"
	"github.com/deckhouse/system-s3/images/gateway/internal/wire"
)

const (
	// bufferSize bounds what one answer holds in memory.
	bufferSize = 128 << 10

	// drainLimit and drainTimeout bound what is taken in only to be able to answer an error.
	drainLimit   = 16 << 20
	drainTimeout = 5 * time.Second
)

// errClosed is what the transport gets when it goes on reading a body that is not wanted any more.
var errClosed = errors.New("the request body is closed")

// buffers are shared by all answers.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// upload is the client's body as it comes from the wire.
type upload struct {
	source   io.ReadCloser
	watchdog *watchdog
	pass     *gate.Pass // nil before the request has entered
	expects  bool       // the client waits for our leave before it sends

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
	u.watchdog.sending.Store(true)
	u.watchdog.resting.Store(false)
	n, err := u.source.Read(p)
	u.watchdog.resting.Store(true) // until more is wanted
	u.watchdog.moved.Add(int64(n))
	u.read.Add(int64(n))
	if u.pass != nil && (err == nil || errors.Is(err, io.EOF)) {
		if full := u.pass.Moved(int64(n)); full != nil {
			return n, full
		}
	}
	if err != nil {
		u.ended.Store(true)
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
func (x *exchange) pump(src io.Reader) (readErr, writeErr error) {
	buffer, _ := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	x.watchdog.sending.Store(false)
	x.watchdog.resting.Store(false)
	conn := wire.FromContext(x.request.Context())
	for {
		n, readErr := x.fill(src, buffer[:])
		if n > 0 {
			if writeErr := writeTogether(conn, x.out, buffer[:n]); writeErr != nil {
				return nil, writeErr
			}
			x.watchdog.moved.Add(int64(n))
		}
		if errors.Is(readErr, io.EOF) {
			return nil, nil
		}
		if readErr != nil {
			return readErr, nil
		}
	}
}

// fill reads until the buffer is full: few large pieces cost less than many small ones.
func (x *exchange) fill(src io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		var more int
		more, err = src.Read(buffer[n:])
		n += more
		x.watchdog.moved.Add(int64(more))
	}
	return n, err
}

// writeTogether sends the head of the answer, if it is still to come, together with the first bytes.
func writeTogether(conn *wire.Conn, dst io.Writer, p []byte) error {
	conn.Hold()
	_, err := dst.Write(p)
	return errors.Join(err, conn.Release())
}
