package process

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

// newProgram writes a script that sleeps, so that a test can change it.
func newProgram(t *testing.T, comment string) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "program")
	rewrite(t, path, comment)

	return path
}

func rewrite(t *testing.T, path, comment string) {
	t.Helper()

	// A process that another test forks meanwhile would hold the file open for writing for a moment, and nobody can run
	// a program that is.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fresh := path + ".new"
	require.NoError(t, os.WriteFile(fresh, []byte("#!/bin/sh\n# "+comment+"\nexec sleep 600\n"), 0o700))
	require.NoError(t, os.Rename(fresh, path))
}

func TestStartAgain(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason  string
		change  func(t *testing.T, s *Spec)
		restart bool
	}{
		"nothing":       {reason: "what runs is what is wanted", change: func(*testing.T, *Spec) {}},
		"same program":  {reason: "building the same anew changes only the time", change: func(t *testing.T, s *Spec) { rewrite(t, s.Args[0], "one") }},
		"other program": {reason: "an older program runs", change: func(t *testing.T, s *Spec) { rewrite(t, s.Args[0], "two") }, restart: true},
		"flags":         {reason: "it runs with other flags", change: func(_ *testing.T, s *Spec) { s.Args = append(s.Args, "--more") }, restart: true},
		"environment":   {reason: "flags may be there too", change: func(_ *testing.T, s *Spec) { s.Env = []string{"A=b"} }, restart: true},
		"configuration": {
			reason: "it was read at the start", restart: true,
			change: func(t *testing.T, s *Spec) { require.NoError(t, os.WriteFile(s.Reads[0], []byte("b"), 0o600)) },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dir, said := statedir.Dir(t.TempDir()), &bytes.Buffer{}
			require.NoError(t, dir.Create())

			spec := Spec{Name: "sleeper", Args: []string{newProgram(t, "one")}, Reads: []string{dir.Path("config")}}
			require.NoError(t, os.WriteFile(spec.Reads[0], []byte("a"), 0o600))
			require.NoError(t, NewTable(dir, said).Start(t.Context(), spec))

			first, _, err := NewTable(dir, said).Find("sleeper")
			require.NoError(t, err)

			c.change(t, &spec)

			table := NewTable(dir, said)
			require.NoError(t, table.Start(t.Context(), spec))

			second, _, err := table.Find("sleeper")
			require.NoError(t, err)
			assert.True(t, second.Alive())
			assert.Equal(t, c.restart, !first.Alive(), c.reason)
			assert.Equal(t, c.restart, bytes.Contains(said.Bytes(), []byte("restarting sleeper")), c.reason)
			require.NoError(t, table.KillGroup(t.Context(), ""))
		})
	}
}

func TestRecordOfAnOlderSandbox(t *testing.T) {
	t.Parallel()

	r := Record{Args: []string{"sleep", "1"}}
	assert.True(t, r.current(Spec{Args: []string{"sleep", "1"}}, "some"), "nothing tells that it is another program")
	assert.False(t, r.current(Spec{Args: []string{"sleep", "2"}}, "some"), "the arguments differ")
}

func TestProcessWithoutRecordIsTakenOver(t *testing.T) {
	t.Parallel()

	table := newTestTable(t)
	spec := Spec{Name: "sleeper", Args: []string{"sleep", "600"}}
	require.NoError(t, table.Start(t.Context(), spec))

	first, _, err := table.Find("sleeper")
	require.NoError(t, err)
	require.NoError(t, os.Remove(table.path("sleeper")), "as after a kill between the start and the record")

	require.NoError(t, table.Start(t.Context(), spec))

	second, _, err := table.Find("sleeper")
	require.NoError(t, err)
	assert.Equal(t, first.PID, second.PID, "two of them would fight for their port")
	require.NoError(t, table.Stop(t.Context(), "sleeper", time.Second))
}

func TestAnyTellsOursFromOthers(t *testing.T) {
	t.Parallel()

	ours, others := newTestTable(t), newTestTable(t)
	require.NoError(t, others.Start(t.Context(), Spec{Name: "sleeper", Args: []string{"sleep", "600"}}))

	running, err := ours.Any()
	require.NoError(t, err)
	assert.False(t, running)

	running, err = others.Any()
	require.NoError(t, err)
	assert.True(t, running)
	require.NoError(t, others.KillGroup(t.Context(), ""))
}

func TestSessionMemory(t *testing.T) {
	t.Parallel()

	table := newTestTable(t)
	require.NoError(t, table.Start(t.Context(), Spec{Name: "pair", Args: []string{"sh", "-c", "sleep 601 & wait"}}))

	r, _, err := table.Find("pair")
	require.NoError(t, err)

	used, err := SessionMemory(r.PID)
	require.NoError(t, err)
	assert.Positive(t, used, "a started process is the first of its own session")
	require.NoError(t, table.KillGroup(t.Context(), ""))

	used, err = SessionMemory(r.PID)
	require.NoError(t, err)
	assert.Zero(t, used)
}
