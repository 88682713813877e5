// Package tool drives clients that are programs, not libraries.
package tool

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const tail = 600

// command runs a program with the Pod's environment and more, and returns what it writes.
type command struct {
	name string
	env  []string
}

func (c command) run(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	var out, trouble bytes.Buffer
	cmd := exec.CommandContext(ctx, c.name, args...) //nolint:gosec // the matrix names the programs
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &trouble
	if err := cmd.Run(); err != nil {
		text := trouble.String()
		return nil, fmt.Errorf("%s %s: %w: %s", c.name, args[0], err, text[max(0, len(text)-tail):])
	}
	return out.Bytes(), nil
}

// do is run for those who only want to know whether it worked.
func (c command) do(ctx context.Context, args ...string) error {
	_, err := c.run(ctx, nil, args...)
	return err
}

func lines(text []byte) int {
	return strings.Count(string(text), "\n")
}

// slowly is a reader of random bytes that takes the time given for all of them: a program that sends them is one process
// and one transfer from the beginning to the end.
type slowly struct {
	ctx   context.Context
	rate  int // bytes a tick
	left  int // ticks
	tick  *time.Ticker
	ready []byte
	all   bytes.Buffer
}

func newSlowly(ctx context.Context, length time.Duration) *slowly {
	const (
		interval = time.Second
		rate     = 1 << 20
	)
	return &slowly{ctx: ctx, rate: rate, left: int(length / interval), tick: time.NewTicker(interval)}
}

// Read implements io.Reader.
func (s *slowly) Read(into []byte) (int, error) {
	if len(s.ready) == 0 {
		if s.left == 0 {
			s.tick.Stop()
			return 0, io.EOF
		}
		select {
		case <-s.tick.C:
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
		s.left--
		s.ready = make([]byte, s.rate)
		_, _ = rand.Read(s.ready) // never fails
		s.all.Write(s.ready)
	}
	n := copy(into, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// sameAs compares what has been read with what was stored.
func (s *slowly) sameAs(got []byte) error {
	if !bytes.Equal(s.all.Bytes(), got) {
		return errors.New("what was read is not what was stored")
	}
	return nil
}
