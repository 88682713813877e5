package process

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

func TestParseStat(t *testing.T) {
	t.Parallel()

	const tail = " S 1 2 3 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 98765 1000 7 18446744073709551615"

	sleeping := stat{state: "S", session: 3, threads: 1, startTime: 98765, resident: 7}

	cases := map[string]struct {
		reason, text string
		want         stat
		fails        bool
	}{
		"plain":       {reason: "the usual line", text: "42 (sleep)" + tail, want: sleeping},
		"parentheses": {reason: "a program may be called anything", text: "42 (a) Z (b c)" + tail, want: sleeping},
		"short":       {reason: "cut in the middle", text: "42 (sleep) S 1 2", fails: true},
		"empty":       {reason: "the process went away", text: "", fails: true},
		"not numbers": {reason: "not a stat file", text: "1 (x) a b c d e f g h i j k l m n o p q r s t u v w", fails: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := parseStat(c.text)
			assert.Equal(t, c.fails, err != nil, c.reason)
			assert.Equal(t, c.want, got, c.reason)
		})
	}
}

func TestEnded(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		stat   stat
		want   bool
	}{
		"runs":    {reason: "it sleeps", stat: stat{state: "S", threads: 1}},
		"zombie":  {reason: "its parent has not collected it", stat: stat{state: "Z", threads: 1}, want: true},
		"dead":    {reason: "collected just now", stat: stat{state: "X"}, want: true},
		"threads": {reason: "another thread still has the files open", stat: stat{state: "Z", threads: 2}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, c.stat.ended(), c.reason)
		})
	}
}

func newTestTable(t *testing.T) Table {
	t.Helper()

	dir := statedir.Dir(t.TempDir())
	require.NoError(t, dir.Create())

	return NewTable(dir, io.Discard)
}

func TestStartTwiceIsOneProcess(t *testing.T) {
	t.Parallel()

	table := newTestTable(t)
	spec := Spec{Name: "sleeper", Args: []string{"sleep", "600"}}

	require.NoError(t, table.Start(t.Context(), spec))

	first, found, err := table.Find("sleeper")
	require.NoError(t, err)
	require.True(t, found)
	require.True(t, first.Alive())

	require.NoError(t, table.Start(t.Context(), spec))

	second, _, err := table.Find("sleeper")
	require.NoError(t, err)
	assert.Equal(t, first, second)

	require.NoError(t, table.Stop(t.Context(), "sleeper", time.Second))
	assert.False(t, first.Alive())

	_, found, err = table.Find("sleeper")
	require.NoError(t, err)
	assert.False(t, found)
}

func TestReusedProcessIDIsNotOurs(t *testing.T) {
	t.Parallel()

	table := newTestTable(t)
	require.NoError(t, table.Start(t.Context(), Spec{Name: "sleeper", Args: []string{"sleep", "600"}}))

	r, _, err := table.Find("sleeper")
	require.NoError(t, err)

	stranger := r
	stranger.StartTime--
	assert.False(t, stranger.Alive(), "the same id with another start time is another process")

	stranger.Name = "stranger"
	require.NoError(t, table.write(stranger))
	require.NoError(t, table.Stop(t.Context(), "stranger", time.Second))
	assert.True(t, r.Alive(), "stopping the record of a stranger ends nothing")

	require.NoError(t, table.Stop(t.Context(), "sleeper", time.Second))
}

func TestKillGroupFindsGrandchildren(t *testing.T) {
	t.Parallel()

	table := newTestTable(t)
	script := []string{"sh", "-c", "sleep 601 & sleep 602 & wait"}

	require.NoError(t, table.Start(t.Context(), Spec{Name: "one", Args: script, Group: "one"}))
	require.NoError(t, table.Start(t.Context(), Spec{Name: "two", Args: script, Group: "two"}))
	require.NoError(t, table.KillGroup(t.Context(), "one"))

	one, _, err := table.Find("one")
	require.NoError(t, err)
	assert.False(t, one.Alive())

	two, _, err := table.Find("two")
	require.NoError(t, err)
	assert.True(t, two.Alive(), "another group is left alone")

	require.NoError(t, table.KillGroup(t.Context(), ""))
	assert.False(t, two.Alive())
}
