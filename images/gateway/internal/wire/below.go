package wire

import (
	"net"
	"sync"

	"github.com/deckhouse/system-s3/images/gateway/internal/socket"
)

// below is the connection beneath TLS. Reads come from one goroutine at a time, writes may come from several.
type below struct {
	*socket.Conn

	in      []byte // a whole buffer of the pool, nil while nothing is buffered
	pending []byte // of in, not yet read

	mu   sync.Mutex
	held int            // Holds without their Release
	out  *[outSize]byte // nil while nothing is held
	used int            // bytes of out
}

func newBelow(conn net.Conn) (*below, error) {
	c, err := socket.New(conn)
	if err != nil {
		return nil, err
	}
	return &below{Conn: c}, nil
}

func lend() []byte {
	buffer, _ := inPool.Get().(*[inSize]byte)
	return buffer[:]
}

func back(buffer []byte) { inPool.Put((*[inSize]byte)(buffer[:inSize])) }

// Read takes all that has come, not only what it is asked for. While it waits it has no buffer.
func (b *below) Read(p []byte) (int, error) {
	if len(b.pending) == 0 {
		data, err := b.ReadLent(lend, back)
		if err != nil {
			return 0, err
		}
		b.in, b.pending = data[:inSize], data
	}
	n := copy(p, b.pending)
	if b.pending = b.pending[n:]; len(b.pending) == 0 {
		back(b.in)
		b.in = nil
	}
	return n, nil
}

// Write sends, or keeps while there is a Hold.
func (b *below) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == 0 && b.used == 0 {
		return b.Conn.Write(p)
	}
	if len(p) > outSize-b.used {
		if err := b.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) > outSize {
		return b.Conn.Write(p)
	}
	if b.out == nil {
		b.out, _ = outPool.Get().(*[outSize]byte)
	}
	b.used += copy(b.out[b.used:], p)
	return len(p), nil
}

func (b *below) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held++
}

func (b *below) release() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held--; b.held > 0 {
		return nil
	}
	return b.flush()
}

// flush sends what is kept, and forgets it also when that fails: the connection is broken then.
func (b *below) flush() error {
	if b.used == 0 {
		return nil
	}
	_, err := b.Conn.Write(b.out[:b.used])
	outPool.Put(b.out)
	b.out, b.used = nil, 0
	return err
}
