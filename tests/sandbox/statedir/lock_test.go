package statedir_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

func TestLockIsHeldByOne(t *testing.T) {
	t.Parallel()

	dir := statedir.Dir(t.TempDir())
	require.NoError(t, dir.Create())

	unlock, err := dir.Lock(t.Context(), io.Discard)
	require.NoError(t, err)

	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()

	var said bytes.Buffer

	_, err = dir.Lock(short, &said)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Contains(t, said.String(), os.Args[0], "whoever waits learns for whom")

	unlock()

	unlock, err = dir.Lock(t.Context(), io.Discard)
	require.NoError(t, err, "given back")
	unlock()
}

func TestLockOfADeletedSandboxIsNotTheNextOnes(t *testing.T) {
	t.Parallel()

	dir := statedir.Dir(t.TempDir())
	require.NoError(t, dir.Create())

	unlock, err := dir.Lock(t.Context(), io.Discard)
	require.NoError(t, err)

	defer unlock()

	require.NoError(t, dir.Remove())
	require.NoError(t, dir.Create())

	again, err := dir.Lock(t.Context(), io.Discard)
	require.NoError(t, err, "the sandbox is another one")
	again()
}

func TestWhoWaitsForARemovalStartsAnew(t *testing.T) {
	t.Parallel()

	dir := statedir.Dir(filepath.Join(t.TempDir(), "sandbox"))
	unlock, err := dir.Lock(t.Context(), io.Discard)
	require.NoError(t, err)

	type outcome struct {
		unlock func()
		err    error
	}

	said, waiting := io.Pipe()
	done := make(chan outcome, 1)

	go func() {
		unlock, err := dir.Lock(t.Context(), waiting)
		done <- outcome{unlock: unlock, err: err}
	}()

	_, err = said.Read(make([]byte, 1024))
	require.NoError(t, err, "it waits")
	go func() { _, _ = io.Copy(io.Discard, said) }()

	require.NoError(t, dir.Remove())
	unlock()

	got := <-done
	require.NoError(t, got.err)
	assert.DirExists(t, dir.Records(), "all that the next command needs is there")
	got.unlock()
}
