package door

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
)

func TestWhoServes(t *testing.T) {
	cases := map[string]struct {
		reason string
		record string // empty: there is none
		epoch  int
		member bool
		want   bool
	}{
		"the first epoch":             {"a new store has nothing to compare", "", 1, true, true},
		"no epoch is told":            {"a template of before", "", 0, true, true},
		"without a role":              {"Garage knows no key there", "", 1, false, false},
		"a later epoch":               {"tables may be empty", "", 2, true, false},
		"opened before a restart":     {"what was opened stays so", "2\n", 2, true, true},
		"the epoch before was opened": {"that says nothing of this one", "2\n", 3, true, false},
		"a torn record":               {"the controller tells again", "", 2, true, false},
		"nonsense":                    {"the controller tells again", "x", 2, true, false},
		"no role any more":            {"its data is left behind", "2\n", 2, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.record != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, recordFile), []byte(c.record), 0o600))
			}
			d, err := New(Config{Dir: dir, Epoch: c.epoch, Member: c.member, Now: time.Now})
			require.NoError(t, err)
			require.Equal(t, c.want, d.IsOpen(), c.reason)
			if !c.want {
				require.ErrorIs(t, d.Pass(t.Context()), access.ErrServiceUnavailable, c.reason)
			}
		})
	}
}

func TestOpening(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	config := Config{Dir: dir, Epoch: 2, Member: true, Now: func() time.Time { return now }}
	d, err := New(config)
	require.NoError(t, err)
	require.Error(t, d.Open(1), "a push that was meant for the epoch before")
	require.Error(t, d.Expect(3))
	require.NoError(t, d.Expect(2))
	require.True(t, d.Expected())

	passed := make(chan error)
	go func() { passed <- d.Pass(context.Background()) }()
	require.NoError(t, d.Open(2))
	require.NoError(t, d.Open(2), "again")
	require.NoError(t, <-passed, "whoever waited is let in")

	now = now.Add(mostExpected)
	require.False(t, d.Expected(), "it wears off")
	again, err := New(config)
	require.NoError(t, err)
	require.True(t, again.IsOpen(), "the volume remembers")
	left, err := filepath.Glob(filepath.Join(dir, "*.new"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAClientThatLeavesWaitsNoMore(t *testing.T) {
	d, err := New(Config{Dir: t.TempDir(), Epoch: 2, Member: true, Now: time.Now})
	require.NoError(t, err)
	require.NoError(t, d.Expect(2))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, d.Pass(ctx), context.Canceled)
}
