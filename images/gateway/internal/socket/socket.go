// Package socket reads and writes TCP sockets without telling Go's scheduler about it. The scheduler expects a system
// call to wait: when one takes longer than 20 microseconds, as copying 128 KiB does, it takes the processor away from the
// goroutine, wakes another thread and lets the monitor look every 20 microseconds. Our sockets never wait in a system
// call (the poller waits), so all of that is wasted: a tenth of the gateway's whole CPU time at 64 KiB and at 1 MiB.
package socket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Conn is a TCP connection. Reads come from one goroutine at a time, and so do writes.
type Conn struct {
	net.Conn

	raw     syscall.RawConn
	reading operation
	writing operation
}

// operation is what a Read or a Write is about while the poller calls back.
type operation struct {
	lend func() []byte // for a Read that has no buffer of its own: one, when there is something to read
	back func([]byte)  // takes it back when there was nothing
	data []byte
	n    int
	err  error
	try  func(fd uintptr) bool // bound once
}

var errKind = errors.New("not a network connection")

// New takes the connection over.
func New(conn net.Conn) (*Conn, error) {
	source, ok := conn.(syscall.Conn)
	if !ok {
		return nil, errKind
	}
	raw, err := source.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("reach the socket: %w", err)
	}
	c := &Conn{Conn: conn, raw: raw}
	c.reading.try, c.writing.try = c.tryRead, c.tryWrite
	return c, nil
}

// Read is a connection's.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.reading.data = p
	return c.read()
}

// ReadLent reads into a buffer that lend gives when something has come, so that a connection that waits has none. The
// buffer comes back with what was read; back takes it when nothing was.
func (c *Conn) ReadLent(lend func() []byte, back func([]byte)) ([]byte, error) {
	c.reading.lend, c.reading.back = lend, back
	n, err := c.read()
	data := c.reading.data
	c.reading.lend, c.reading.back, c.reading.data = nil, nil, nil
	if n == 0 {
		return nil, err
	}
	return data[:n], err
}

func (c *Conn) read() (int, error) {
	c.reading.n, c.reading.err = 0, nil
	if err := c.raw.Read(c.reading.try); err != nil {
		return 0, err
	}
	if c.reading.n == 0 && c.reading.err == nil {
		return 0, io.EOF
	}
	return c.reading.n, c.reading.err
}

// tryRead is called by the poller until it returns true.
func (c *Conn) tryRead(fd uintptr) bool {
	r := &c.reading
	if r.lend != nil {
		r.data = r.lend()
	}
	n, errno := call(unix.SYS_READ, fd, r.data)
	if r.lend != nil && n == 0 {
		r.back(r.data)
		r.data = nil
	}
	if errno == unix.EAGAIN {
		return false
	}
	r.n, r.err = n, c.opError("read", errno)
	return true
}

// Write is a connection's.
func (c *Conn) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.writing.data, c.writing.n, c.writing.err = p, 0, nil
	err := c.raw.Write(c.writing.try)
	if err == nil {
		err = c.writing.err
	}
	return c.writing.n, err
}

// tryWrite is called by the poller until it returns true.
func (c *Conn) tryWrite(fd uintptr) bool {
	w := &c.writing
	for w.n < len(w.data) {
		n, errno := call(unix.SYS_WRITE, fd, w.data[w.n:])
		if errno == unix.EAGAIN {
			return false
		}
		if errno != 0 {
			w.err = c.opError("write", errno)
			return true
		}
		w.n += n
	}
	return true
}

// opError gives an error the form that net gives it, by which net/http knows it.
func (c *Conn) opError(op string, errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(op, errno)}
}

// Quiet tells whether the connection is open and has nothing to say, without waiting.
func (c *Conn) Quiet() bool {
	quiet := false
	err := c.raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		quiet = errors.Is(err, unix.EAGAIN)
	})
	return err == nil && quiet
}

// Acknowledge tells the other side at once that what it sent has come, which the kernel would put off for 40 ms.
func (c *Conn) Acknowledge() {
	_ = c.raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) // what fails is only slower
	})
}

// call does one system call, again if a signal came between. The buffer is not empty.
func call(number, fd uintptr, buffer []byte) (int, syscall.Errno) {
	for {
		//nolint:gosec // the only way to a system call that the scheduler does not know of; the buffer lives until it returns
		n, _, errno := unix.RawSyscall(number, fd, uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)))
		switch errno {
		case 0:
			return int(n), 0
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
