package sigv4

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/deckhouse/system-s3/lib/access"
)

const (
	// maxChunk bounds a signed chunk, which is kept in memory until its signature is verified. SDKs send 64 KiB to 1 MiB.
	maxChunk = 16 << 20
	// pooledChunk bounds the buffers kept for reuse.
	pooledChunk = 1 << 20
	firstRead   = 64 << 10

	readBuffer  = 32 << 10
	maxLine     = 1024 // of a chunk's head or a trailer
	maxEnd      = 4    // bytes of line breaks after the last line
	sizeDigits  = 16
	signatureIn = ";chunk-signature="
	trailerSign = "x-amz-trailer-signature"
)

var (
	errChunk = access.ErrInvalidRequest.With("The chunked body is not well-formed.")

	chunkPool  = sync.Pool{New: func() any { return new(make([]byte, 0, firstRead)) }}
	readerPool = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readBuffer) }}
)

// chunkReader decodes an aws-chunked body.
type chunkReader struct {
	source  *bufio.Reader
	chain   *chain // nil for unsigned chunks
	missing int64  // decoded bytes that are still to come
	trailer string // name of the announced trailer, "" for none

	buffer *[]byte // the signed chunk being verified or handed out
	ready  []byte  // verified bytes, part of buffer
	left   int64   // bytes of an unsigned chunk that are still to come

	trailerValue string
	err          error // sticky, io.EOF at the end
}

func newChunkReader(source io.Reader, length int64, trailer string) *chunkReader {
	reader := readerPool.Get().(*bufio.Reader)
	reader.Reset(source)
	return &chunkReader{source: reader, missing: length, trailer: trailer}
}

// Read gives buffers back when the body ends, not when it is closed: the transport may close while a Read is under way.
func (c *chunkReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(c.ready) == 0 && c.err == nil {
		var n int
		if c.chain != nil {
			c.err = c.fill()
		} else if n, c.err = c.stream(p); n > 0 {
			return n, nil
		}
	}
	if len(c.ready) > 0 {
		n := copy(p, c.ready)
		c.ready = c.ready[n:]
		return n, nil
	}
	if c.err != nil {
		c.release()
	}
	return 0, c.err
}

func (c *chunkReader) release() {
	if c.source != nil {
		c.source.Reset(nil)
		readerPool.Put(c.source)
		c.source = nil
	}
	if c.buffer != nil {
		if cap(*c.buffer) <= pooledChunk {
			chunkPool.Put(c.buffer)
		}
		c.buffer = nil
	}
}

// fill reads and verifies a whole signed chunk; with the last bytes announced, also all that follows them. io.EOF comes
// along with the last bytes.
func (c *chunkReader) fill() error {
	if c.missing == 0 {
		return c.finish()
	}
	size, signature, err := c.next()
	if err != nil {
		return err
	}
	if size > maxChunk {
		return access.ErrInvalidRequest.With("A signed chunk must not be larger than 16 MiB.")
	}
	if err := c.load(int(size)); err != nil {
		return err
	}
	if !c.chain.chunk(*c.buffer, signature) {
		return access.ErrSignature
	}
	if err := c.lineEnd(); err != nil {
		return err
	}
	if c.missing -= size; c.missing > 0 {
		c.ready = *c.buffer
		return nil
	}
	err = c.finish()
	if errors.Is(err, io.EOF) {
		c.ready = *c.buffer
	}
	return err
}

// load reads size bytes; the buffer grows with what arrives, not with what was announced.
func (c *chunkReader) load(size int) error {
	if c.buffer == nil {
		c.buffer = chunkPool.Get().(*[]byte)
	}
	data := (*c.buffer)[:0]
	for len(data) < size {
		step := min(size-len(data), max(firstRead, len(data)))
		data = slices.Grow(data, step)
		n, err := io.ReadFull(c.source, data[len(data):len(data)+step])
		data = data[:len(data)+n]
		if err != nil {
			return short(err)
		}
	}
	*c.buffer = data
	return nil
}

// stream hands out bytes of unsigned chunks as they come, except the last ones.
func (c *chunkReader) stream(p []byte) (int, error) {
	if c.missing == 0 {
		return 0, c.finish()
	}
	if c.left == 0 {
		size, _, err := c.next()
		if err != nil {
			return 0, err
		}
		c.left = size
	}
	n, err := c.source.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	c.missing -= int64(n)
	switch {
	case err != nil:
		return 0, short(err)
	case c.left > 0:
		return n, nil
	}
	err = c.lineEnd()
	if err == nil && c.missing == 0 {
		err = c.finish()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return n, err
}

// next reads the head of a chunk that must have bytes, and no more than are missing.
func (c *chunkReader) next() (size int64, signature string, err error) {
	size, signature, err = c.head()
	if err == nil && (size == 0 || size > c.missing) {
		err = access.ErrIncompleteBody
	}
	return size, signature, err
}

// finish reads the empty last chunk and the trailer and wants the body to end there. It returns io.EOF if all is well.
func (c *chunkReader) finish() error {
	size, signature, err := c.head()
	if err != nil {
		return err
	}
	if size != 0 {
		return access.ErrIncompleteBody
	}
	if c.chain != nil && !c.chain.chunk(nil, signature) {
		return access.ErrSignature
	}
	if c.trailer != "" {
		if err := c.readTrailer(); err != nil {
			return err
		}
	}
	return c.end()
}

// readTrailer reads `name:value` and, in a signed body, the signature of it. Clients differ in the line breaks.
func (c *chunkReader) readTrailer() error {
	name, value, err := c.field()
	if err != nil {
		return err
	}
	size, _ := checksumSize(c.trailer)
	sum, err := base64.StdEncoding.DecodeString(value)
	if name != c.trailer || err != nil || len(sum) != size {
		return access.ErrMalformedTrailer
	}
	if c.chain == nil {
		c.trailerValue = value
		return nil
	}
	name, signature, err := c.field()
	if err != nil {
		return err
	}
	if name != trailerSign {
		return access.ErrMalformedTrailer
	}
	if !c.chain.trailer(c.trailer+":"+value+"\n", signature) {
		return access.ErrSignature
	}
	c.trailerValue = value
	return nil
}

// field reads the next `name:value` line, passing over one empty line.
func (c *chunkReader) field() (name, value string, err error) {
	line, err := c.line()
	if err == nil && len(line) == 0 {
		line, err = c.line()
	}
	if err != nil {
		return "", "", err
	}
	name, value, ok := strings.Cut(string(line), ":")
	if !ok {
		return "", "", access.ErrMalformedTrailer
	}
	return strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value), nil
}

// end wants nothing but line breaks up to the end of the body.
func (c *chunkReader) end() error {
	rest, err := io.ReadAll(io.LimitReader(c.source, maxEnd+1))
	if err != nil {
		return short(err)
	}
	if len(rest) > maxEnd || len(bytes.Trim(rest, "\r\n")) > 0 {
		return errChunk
	}
	return io.EOF
}

// head reads a chunk's size and signature.
func (c *chunkReader) head() (size int64, signature string, err error) {
	line, err := c.line()
	if err != nil {
		return 0, "", err
	}
	digits, signature, signed := strings.Cut(string(line), signatureIn)
	if signed != (c.chain != nil) {
		return 0, "", errChunk
	}
	n, err := strconv.ParseUint(digits, 16, 63)
	if err != nil || len(digits) > sizeDigits {
		return 0, "", errChunk
	}
	return int64(n), signature, nil
}

// line reads a line without its line break. It is valid until the next read.
func (c *chunkReader) line() ([]byte, error) {
	line, err := c.source.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || len(line) > maxLine {
		return nil, errChunk
	}
	if err != nil {
		return nil, short(err)
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
}

// lineEnd reads the line break after a chunk's bytes.
func (c *chunkReader) lineEnd() error {
	line, err := c.line()
	if err != nil {
		return err
	}
	if len(line) > 0 {
		return errChunk
	}
	return nil
}

// short tells a body that ended too early from a connection that broke.
func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return access.ErrIncompleteBody
	}
	return err
}

// chain is the signatures of chunks, each of which covers the one before.
type chain struct {
	key      []byte
	prefix   string // time and scope
	previous string
}

func newChain(p proof) *chain {
	return &chain{
		key:      p.key,
		prefix:   p.auth.time.Format(timeFormat) + "\n" + p.auth.scope.String() + "\n",
		previous: string(p.auth.signature),
	}
}

const emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// chunk tells whether the signature is that of the data at this place of the chain.
func (c *chain) chunk(data []byte, signature string) bool {
	sum := sha256.Sum256(data)
	return c.next("AWS4-HMAC-SHA256-PAYLOAD", emptySum+"\n"+hex.EncodeToString(sum[:]), signature)
}

// trailer tells whether the signature is that of the trailers, given as lines, after the last chunk.
func (c *chain) trailer(lines, signature string) bool {
	return c.next("AWS4-HMAC-SHA256-TRAILER", hexSum(lines), signature)
}

func (c *chain) next(kind, sums, signature string) bool {
	want := hex.EncodeToString(mac(c.key, []byte(kind+"\n"+c.prefix+c.previous+"\n"+sums)))
	c.previous = want
	return hmac.Equal([]byte(want), []byte(signature))
}
