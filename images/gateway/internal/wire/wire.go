// Package wire makes TLS connections that cost few system calls. crypto/tls reads and writes record by record, 16 KiB
// at most; here the records of a large write leave together and many arrive together. Buffers belong to a connection
// only while they hold something, so that idle connections cost next to nothing.
package wire

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
)

const (
	// maxRecord is the largest plaintext of a TLS record.
	maxRecord = 16 << 10
	// outSize holds the records of 128 KiB, what an answer is copied by, and the head before them.
	outSize = 144 << 10
	inSize  = 64 << 10
)

var (
	outPool = sync.Pool{New: func() any { return new([outSize]byte) }}
	inPool  = sync.Pool{New: func() any { return new([inSize]byte) }}
)

// Listener accepts TLS connections. The handshake happens with the first read or write.
type Listener struct {
	net.Listener

	config *tls.Config
	slots  chan struct{} // one is taken by every open connection
	closed chan struct{}
	close  func() error

	mu   sync.Mutex
	idle *list.List // of *Conn, the longest idle first
}

// Listen accepts at most so many connections at a time. For one more the longest idle is closed; where none is idle,
// more wait for their turn.
func Listen(below net.Listener, config *tls.Config, connections int) *Listener {
	l := &Listener{Listener: below, config: config, slots: make(chan struct{}, connections), closed: make(chan struct{}), idle: list.New()}
	l.close = sync.OnceValue(func() error {
		close(l.closed)
		return l.Listener.Close()
	})
	return l
}

// Accept waits for the next connection, which is a *Conn, and for a place for it.
func (l *Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if len(l.slots) == cap(l.slots) {
		l.closeIdle()
	}
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, errors.Join(net.ErrClosed, accepted.Close())
	}
	below, err := newBelow(accepted)
	if err != nil {
		<-l.slots
		return nil, errors.Join(err, accepted.Close())
	}
	return &Conn{Conn: tls.Server(below, l.config), below: below, leave: sync.OnceFunc(func() { <-l.slots })}, nil
}

// ConnState is for an http.Server, to tell which connections are idle.
func (l *Listener) ConnState(c net.Conn, state http.ConnState) {
	conn, ok := c.(*Conn)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if conn.idle != nil {
		l.idle.Remove(conn.idle)
		conn.idle = nil
	}
	if state == http.StateIdle {
		conn.idle = l.idle.PushBack(conn)
	}
}

// closeIdle closes the longest idle connection. Its server notices that and gives the slot back.
func (l *Listener) closeIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	conn, ok := (*Conn)(nil), false
	if first := l.idle.Front(); first != nil {
		conn, ok = l.idle.Remove(first).(*Conn)
	}
	if ok {
		conn.idle = nil
		_ = conn.below.Close() // without the farewell of TLS, which could wait
	}
}

// Close ends accepting; connections go on.
func (l *Listener) Close() error { return l.close() }

// Conn is a TLS connection.
type Conn struct {
	*tls.Conn

	below *below
	leave func()
	idle  *list.Element // of the listener, nil while it is not idle; guarded by its lock
}

// Close ends the connection.
func (c *Conn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// Write sends the records of p together.
func (c *Conn) Write(p []byte) (int, error) {
	if len(p) <= maxRecord {
		return c.Conn.Write(p)
	}
	c.Hold()
	n, err := c.Conn.Write(p)
	if releaseErr := c.Release(); err == nil {
		err = releaseErr
	}
	return n, err
}

// Hold keeps what is written until Release, as far as it fits; each Hold needs its Release. A nil connection is none.
func (c *Conn) Hold() {
	if c != nil {
		c.below.hold()
	}
}

// Release sends what was held when the last Hold is released.
func (c *Conn) Release() error {
	if c == nil {
		return nil
	}
	return c.below.release()
}

type key struct{}

// Context carries the connection; it is an http.Server's ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// FromContext is the connection that a request came by, nil when it came by another kind.
func FromContext(ctx context.Context) *Conn {
	c, _ := ctx.Value(key{}).(*Conn)
	return c
}
