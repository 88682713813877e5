package sigv4

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/deckhouse/system-s3/lib/access"
)

// Body is the decoded body: the framing of chunks is gone, bytes of a signed chunk come only after that chunk's
// signature was verified, the last bytes of any chunked body only after everything was. Reading is for one goroutine;
// Err may be asked from another.
type Body struct {
	length  int64
	source  io.Closer
	reader  io.Reader
	chunks  *chunkReader // nil when the body is not chunked
	trailer string       // name of the announced trailer, "" for none

	mu  sync.Mutex
	err error
}

// Length is the number of decoded bytes, -1 when it is not known beforehand (POST forms).
func (b *Body) Length() int64 { return b.length }

// Read reads decoded bytes. Errors that are the client's fault are, or wrap, an access.Error.
func (b *Body) Read(p []byte) (int, error) {
	n, err := b.reader.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = access.ErrIncompleteBody
	}
	b.fail(err)
	return n, err
}

// Inspect reads the whole body and hands it to judge; what is read afterwards is the same bytes, if judge has nothing
// against them. The error is judge's, that of reading, or ErrBodyTooLarge when there are more bytes than limit.
func (b *Body) Inspect(limit int64, judge func(data []byte) error) error {
	data, err := io.ReadAll(io.LimitReader(b, limit+1))
	switch {
	case err != nil:
		return err //nolint:wrapcheck // an error of the body, as Read has it
	case int64(len(data)) > limit:
		return access.ErrBodyTooLarge
	}
	if err := judge(data); err != nil {
		return err
	}
	b.reader = bytes.NewReader(data)
	return nil
}

// Close closes the client's body.
func (b *Body) Close() error {
	if b.source == nil {
		return nil
	}
	return b.source.Close()
}

// Err is the first error that reading met, other than io.EOF. The HTTP transport does not hand it through: where the
// body was wrong, this and not the transport's error is what to answer.
func (b *Body) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Trailer is the value of the announced trailing checksum, "" when none was announced or Read has not returned io.EOF.
// Forward passes it on by itself.
func (b *Body) Trailer() (name, value string) {
	if b.chunks == nil || b.trailer == "" {
		return "", ""
	}
	return b.trailer, b.chunks.trailerValue
}

func (b *Body) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
}
