// Package upstream sends requests to Garage. It is an http.RoundTripper for one HTTP/1.1 server nearby that spends less
// on a request than net/http's: a request and its answer are written and read by the goroutine that asks, where
// net/http hands them to two others, and idle connections hold no buffers. At 64 KiB that is a fifth of a request's
// whole cost.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhouse/system-s3/images/gateway/internal/socket"
)

// Transport is safe for concurrent use. Its zero value lacks an address.
type Transport struct {
	Address       string        // host:port of the server
	DialTimeout   time.Duration // of a connection
	Patience      time.Duration // with a server that refuses connections because it is being started
	AnswerTimeout time.Duration // from the last byte of a request to the head of its answer, and for every piece of the request
	MaxIdle       int           // connections kept open

	mu   sync.Mutex
	idle []*conn // the last used is the last
}

// errUnused means that a connection was closed by the server before it had taken in the request.
var errUnused = errors.New("the connection was closed before there was an answer")

// RoundTrip sends the request and returns the answer as soon as its head is there. It never asks for anybody's leave to
// send the body. A request that a kept connection did not take in is repeated when it may be: when it has no body and
// does not change anything twice.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		c, kept, err := t.connection(r.Context())
		if err != nil {
			closeBody(r)
			return nil, err
		}
		response, err := t.ask(c, r)
		if err == nil {
			return response, nil
		}
		c.close()
		if kept && errors.Is(err, errUnused) && repeatable(r) && r.Context().Err() == nil {
			continue
		}
		return nil, err
	}
}

func repeatable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		return r.Body == nil || r.Body == http.NoBody
	}
	return false
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // what is left of it is nobody's business
	}
}

// ask does one exchange on a connection, which the caller closes when there is an error.
func (t *Transport) ask(c *conn, r *http.Request) (*http.Response, error) {
	defer closeBody(r)
	if err := c.begin(r.Context()); err != nil {
		return nil, err
	}
	if err := c.send(r, t.AnswerTimeout); err != nil {
		return t.early(c, r, err)
	}
	response, err := c.receive(r, t.AnswerTimeout)
	if err != nil {
		return nil, err
	}
	return t.answer(c, response), nil
}

// earlyTimeout is for an answer that is there already.
const earlyTimeout = time.Second

// early looks for the answer of a server that did not want the whole request: it answers and hangs up.
func (t *Transport) early(c *conn, r *http.Request, sending error) (*http.Response, error) {
	if !errors.Is(sending, errSending) || r.Context().Err() != nil {
		return nil, sending
	}
	response, err := c.receive(r, earlyTimeout)
	if err != nil {
		return nil, errors.Join(sending, err)
	}
	response.Close = true
	return t.answer(c, response), nil
}

// answer ties the connection to the end of the answer.
func (t *Transport) answer(c *conn, response *http.Response) *http.Response {
	b := &body{source: response.Body, transport: t, conn: c, reuse: !response.Close}
	if response.Body = b; b.source == http.NoBody {
		b.done(true)
	}
	return response
}

// connection is a kept connection, if there is one that the server has not closed meanwhile, else a new one.
func (t *Transport) connection(ctx context.Context) (c *conn, kept bool, err error) {
	for {
		c := t.take()
		if c == nil {
			break
		}
		if c.Quiet() {
			return c, true, nil
		}
		c.close()
	}
	dialed, err := t.dial(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("connect: %w", err)
	}
	taken, err := socket.New(dialed)
	if err != nil {
		return nil, false, errors.Join(err, dialed.Close())
	}
	return &conn{Conn: taken}, false, nil
}

// redial is how often a server that is being started is tried.
const redial = 50 * time.Millisecond

// dial tries again while connections are refused: nothing of the request has been sent yet, so waiting is safe, and
// Garage is back within a second or two after a crash.
func (t *Transport) dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{Timeout: t.DialTimeout, KeepAlive: time.Minute}
	for began := time.Now(); ; {
		conn, err := dialer.DialContext(ctx, "tcp", t.Address)
		if err == nil || !errors.Is(err, unix.ECONNREFUSED) || time.Since(began)+redial > t.Patience {
			return conn, err
		}
		select {
		case <-time.After(redial):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (t *Transport) take() *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.idle) - 1
	if last < 0 {
		return nil
	}
	c := t.idle[last]
	t.idle[last] = nil
	t.idle = t.idle[:last]
	return c
}

func (t *Transport) keep(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle) >= t.MaxIdle {
		c.close()
		return
	}
	t.idle = append(t.idle, c)
}

// CloseIdleConnections closes the connections that are kept.
func (t *Transport) CloseIdleConnections() {
	for c := t.take(); c != nil; c = t.take() {
		c.close()
	}
}

// body gives its connection back when the answer has been read, and closes it when it is closed before.
type body struct {
	source    io.Reader
	transport *Transport
	conn      *conn // nil when it is done with
	reuse     bool
	err       error // why it is done with
}

// Read reads the answer.
func (b *body) Read(p []byte) (int, error) {
	if b.conn == nil {
		return 0, b.err
	}
	n, err := b.source.Read(p)
	if err != nil {
		b.err = err
		b.done(errors.Is(err, io.EOF))
	}
	return n, err
}

// Close may come before the end of the answer.
func (b *body) Close() error {
	if b.conn != nil {
		b.err = http.ErrBodyReadAfterClose
		b.done(false)
	}
	return nil
}

func (b *body) done(whole bool) {
	c := b.conn
	b.conn = nil
	if b.err == nil {
		b.err = io.EOF
	}
	if c.end() && whole && b.reuse {
		b.transport.keep(c)
	} else {
		c.close()
	}
}
