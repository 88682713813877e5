package sigv4

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
)

// frameSize is the chunk that Garage gets: it keeps a whole chunk in memory, and some SDKs send all of a body as one.
const frameSize = 64 << 10

// framer writes a body as unsigned chunks with a trailing checksum. It copies nothing: frames are as long as what is
// left allows, so their heads are known before their bytes.
type framer struct {
	body    *Body
	left    int64  // bytes of the body not yet framed
	frame   int64  // bytes of the current frame still to come
	pending []byte // heads and ends of frames
	done    bool
}

func newFramer(body *Body) *framer {
	f := &framer{body: body, left: body.length}
	f.open()
	return f
}

// open writes the head of the next frame.
func (f *framer) open() {
	if f.frame = min(f.left, frameSize); f.frame > 0 {
		f.pending = fmt.Appendf(f.pending, "%x\r\n", f.frame)
	}
}

// total is the length of the framed body.
func (f *framer) total() int64 {
	frame := func(n int64) int64 { return int64(len(fmt.Sprintf("%x", n))) + 2 + n + 2 }
	total := f.body.length / frameSize * frame(frameSize)
	if rest := f.body.length % frameSize; rest > 0 {
		total += frame(rest)
	}
	size, _ := checksumSize(f.body.trailer)
	value := base64.StdEncoding.EncodedLen(size)
	return total + int64(len("0\r\n")+len(f.body.trailer)+len(":")+value+len("\r\n\r\n"))
}

// Read hands out the last frame's end only after the body has ended well.
func (f *framer) Read(p []byte) (int, error) {
	for len(f.pending) == 0 && f.frame == 0 {
		if f.done {
			return 0, io.EOF
		}
		if err := f.finish(); err != nil {
			return 0, err
		}
	}
	if len(f.pending) > 0 {
		n := copy(p, f.pending)
		f.pending = f.pending[n:]
		return n, nil
	}
	return f.copy(p)
}

// copy hands out bytes of the body that belong to the current frame.
func (f *framer) copy(p []byte) (int, error) {
	n, err := f.body.Read(p[:min(int64(len(p)), f.frame)])
	f.frame -= int64(n)
	f.left -= int64(n)
	if errors.Is(err, io.EOF) && f.left == 0 {
		err = nil // finish asks again
	}
	if errors.Is(err, io.EOF) {
		err = errFraming
	}
	if f.frame == 0 {
		f.pending = append(f.pending[:0], "\r\n"...)
		f.open()
	}
	return n, err
}

// finish reads the end of the body, by which the trailer is known, and writes the last chunk.
func (f *framer) finish() error {
	var rest [1]byte
	n, err := io.ReadFull(f.body, rest[:])
	if n > 0 {
		return errFraming
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	name, value := f.body.Trailer()
	f.pending = fmt.Appendf(f.pending[:0], "0\r\n%s:%s\r\n\r\n", name, value)
	f.done = true
	return nil
}

// Close closes the client's body.
func (f *framer) Close() error { return f.body.Close() }

var errFraming = errors.New("body and announced length differ")
