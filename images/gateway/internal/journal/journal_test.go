package journal_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/gateway/internal/journal"
)

func object(key string) journal.Object { return journal.Object{Bucket: "b", Key: key} }

func TestReading(t *testing.T) {
	for name, c := range map[string]struct {
		record []string
		after  int64
		want   []journal.Entry
	}{
		"nothing was written": {want: []journal.Entry{}},
		"in order":            {record: []string{"z", "a"}, want: []journal.Entry{{object("z"), 1}, {object("a"), 2}}},
		"the newest place":    {record: []string{"a", "b", "a"}, want: []journal.Entry{{object("b"), 2}, {object("a"), 3}}},
		"after a sequence":    {record: []string{"a", "b"}, after: 1, want: []journal.Entry{{object("b"), 2}}},
		"written again after": {record: []string{"a", "b", "a"}, after: 2, want: []journal.Entry{{object("a"), 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			var j journal.Journal
			j.Record(object("before it began"))
			j.Begin("one")
			for _, key := range c.record {
				j.Record(object(key))
			}
			page, err := j.Read("one", c.after)
			require.NoError(t, err)
			require.Equal(t, journal.Page{ID: "one", Last: int64(len(c.record)), Entries: c.want}, page)
			again, err := j.Read("one", 0)
			require.NoError(t, err)
			require.Equal(t, c.want, again.Entries, "what was acknowledged is gone, the rest is told again")
		})
	}
}

func TestAJournalIsKnownByItsID(t *testing.T) {
	var j journal.Journal
	_, err := j.Read("", 0)
	require.ErrorIs(t, err, journal.ErrUnknown)
	j.Begin("one")
	j.Record(object("a"))
	j.Begin("one")
	page, err := j.Read("one", 0)
	require.NoError(t, err)
	require.Len(t, page.Entries, 1, "it goes on")
	j.Begin("two")
	_, err = j.Read("one", 0)
	require.ErrorIs(t, err, journal.ErrUnknown)
	j.End()
	_, err = j.Read("two", 0)
	require.ErrorIs(t, err, journal.ErrUnknown)
}

func TestPagesAndOverflow(t *testing.T) {
	var j journal.Journal
	j.Begin("one")
	for i := range 5001 {
		j.Record(object(strconv.Itoa(i)))
	}
	page, err := j.Read("one", 0)
	require.NoError(t, err)
	require.True(t, page.More)
	require.Len(t, page.Entries, 5000)
	page, err = j.Read("one", page.Entries[4999].Sequence)
	require.NoError(t, err)
	require.False(t, page.More)
	require.Len(t, page.Entries, 1)

	long := strings.Repeat("x", 1<<20)
	for i := range 9 {
		j.Record(object(long + strconv.Itoa(i)))
	}
	page, err = j.Read("one", page.Last+9)
	require.NoError(t, err)
	require.True(t, page.Overflow)
	j.Record(object("later"))
	page, err = j.Read("one", 0)
	require.NoError(t, err)
	require.True(t, page.Overflow, "for good")
	require.Empty(t, page.Entries)
}
