package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/sys/unix"

	"github.com/deckhouse/system-s3/images/gateway/internal/socket"
)

// bufferSize is what is sent at once, and read at once before the reader's own buffer takes over.
const bufferSize = 64 << 10

var (
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferSize) }}
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bufferSize) }}
)

var (
	errSending = errors.New("send the request")
	errHeader  = errors.New("a header is not fit to be sent")
	errLength  = errors.New("the request body has another length than announced")
)

// conn is a connection, used by one exchange at a time.
type conn struct {
	*socket.Conn

	reader *bufio.Reader // nil between exchanges
	ctx    context.Context
	stop   func() bool // ends the watch on the exchange's context
}

func (c *conn) close() {
	c.end()
	_ = c.Close() // nothing of it is needed any more
}

// begin makes the end of the context unblock what waits for the server.
func (c *conn) begin(ctx context.Context) error {
	c.ctx = ctx
	c.stop = context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // a closed connection does not wait
	return context.Cause(ctx)
}

// end ends the exchange; false means that the connection cannot be used again.
func (c *conn) end() bool {
	if c.stop == nil {
		return true
	}
	usable := c.stop()
	c.stop, c.ctx = nil, nil
	if c.reader != nil {
		usable = usable && c.reader.Buffered() == 0
		c.reader.Reset(nil)
		readers.Put(c.reader)
		c.reader = nil
	}
	return usable
}

// send writes the request; the server may be busy for as long as the patience before it takes more of it. An error wraps
// errSending when it was the connection that failed.
func (c *conn) send(r *http.Request, patience time.Duration) error {
	w, _ := writers.Get().(*bufio.Writer)
	w.Reset(sender{c, patience})
	defer func() {
		w.Reset(nil)
		writers.Put(w)
	}()
	if err := writeHead(w, r); err != nil {
		return err
	}
	if err := writeBody(w, r); err != nil {
		return err
	}
	return w.Flush()
}

// sender bounds every write and marks the errors of the connection. It also hides the connection's ReadFrom, which would
// send small pieces.
type sender struct {
	conn     *conn
	patience time.Duration
}

// Write sends.
func (s sender) Write(p []byte) (int, error) {
	if err := s.conn.bound(s.conn.SetWriteDeadline, time.Now().Add(s.patience)); err != nil {
		return 0, err
	}
	n, err := s.conn.Write(p)
	if err != nil {
		err = errors.Join(errSending, err)
	}
	return n, err
}

// receive reads the head of the answer.
func (c *conn) receive(r *http.Request, timeout time.Duration) (*http.Response, error) {
	if err := c.bound(c.SetReadDeadline, time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	c.reader, _ = readers.Get().(*bufio.Reader)
	c.reader.Reset(c.Conn)
	if _, err := c.reader.Peek(1); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
			err = errors.Join(errUnused, err)
		}
		return nil, err
	}
	for {
		response, err := http.ReadResponse(c.reader, r)
		if err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		if response.StatusCode >= http.StatusOK {
			c.hurry(r, response)
			return response, c.bound(c.SetReadDeadline, time.Time{})
		}
	}
}

// hurry makes Garage send the data that follows the head: it sends the head first and, as it leaves Nagle's algorithm on,
// the data only when the head has been acknowledged, which the kernel puts off for 40 ms. Only reads are in a hurry: of
// deletions Garage tells when two replicas of three have them, and a listing that comes at once could still show what the
// third has not deleted yet.
func (c *conn) hurry(r *http.Request, response *http.Response) {
	if r.Method == http.MethodGet && c.reader.Buffered() == 0 && response.ContentLength != 0 {
		c.Acknowledge()
	}
}

// bound sets a deadline; the end of the context counts for more, whichever comes first.
func (c *conn) bound(set func(time.Time) error, deadline time.Time) error {
	if err := set(deadline); err != nil {
		return fmt.Errorf("set a deadline: %w", err)
	}
	return context.Cause(c.ctx)
}

func writeHead(w *bufio.Writer, r *http.Request) error {
	target := r.URL.RequestURI()
	if strings.ContainsFunc(target, func(c rune) bool { return c <= ' ' || c == 0x7f }) || !httpguts.ValidHostHeader(r.Host) {
		return errHeader
	}
	for _, part := range []string{r.Method, " ", target, " HTTP/1.1\r\nHost: ", r.Host, "\r\n"} {
		_, _ = w.WriteString(part) // the writer keeps its first error for Flush
	}
	for name, values := range r.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return errHeader
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return errHeader
			}
			for _, part := range []string{name, ": ", value, "\r\n"} {
				_, _ = w.WriteString(part) // see above
			}
		}
	}
	_, _ = w.WriteString(framing(r)) // see above
	return nil
}

// framing is the header that tells how long the body is, with the end of the head.
func framing(r *http.Request) string {
	switch {
	case r.ContentLength < 0:
		return "Transfer-Encoding: chunked\r\n\r\n"
	case r.ContentLength > 0 || r.Method == http.MethodPut || r.Method == http.MethodPost:
		return "Content-Length: " + strconv.FormatInt(r.ContentLength, 10) + "\r\n\r\n"
	}
	return "\r\n"
}

// writeBody reads the body to its end also when its length is known: only there does a reader that verifies say that
// all is well.
func writeBody(w *bufio.Writer, r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody {
		if r.ContentLength > 0 {
			return errLength
		}
		return nil
	}
	if r.ContentLength < 0 {
		chunks := httputil.NewChunkedWriter(w)
		if _, err := io.Copy(chunks, r.Body); err != nil {
			return err
		}
		_ = chunks.Close()           // the writer keeps its first error for Flush
		_, _ = w.WriteString("\r\n") // see above
		return nil
	}
	body := &io.LimitedReader{R: r.Body, N: r.ContentLength}
	if _, err := w.ReadFrom(body); err != nil {
		return err
	}
	return wantEnd(r.Body, body.N)
}

// wantEnd wants the body to end where it was announced to, with so many bytes missing.
func wantEnd(body io.Reader, missing int64) error {
	var more [1]byte
	n, err := io.ReadFull(body, more[:])
	switch {
	case n > 0 || missing > 0 && errors.Is(err, io.EOF):
		return errLength
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}
