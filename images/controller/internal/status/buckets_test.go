package status_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/controller/internal/status"
)

func shown(b status.Buckets) []string {
	list := make([]string, 0, len(b.Rows))
	for _, r := range b.Rows {
		list = append(list, r.Namespace+"/"+r.Name)
	}
	return list
}

func TestBucketsAreFoundAndOrdered(t *testing.T) {
	t.Parallel()
	w := world(buckets(
		bucket("d8-b", "logs", 10<<30, 1<<30), bucket("d8-a", "logs", 4<<30, 2<<30), bucket("d8-a", "backups", 40<<30, 3<<30), full(),
	))
	cases := map[string]struct {
		query status.Query
		want  []string
	}{
		"all":       {status.Query{}, []string{"d8-a/backups", "d8-a/full", "d8-a/logs", "d8-b/logs"}},
		"namespace": {status.Query{Namespace: "d8-b"}, []string{"d8-b/logs"}},
		"text":      {status.Query{Text: "LOGS"}, []string{"d8-a/logs", "d8-b/logs"}},
		"both":      {status.Query{Text: "a/lo", Namespace: "d8-a"}, []string{"d8-a/logs"}},
		"none":      {status.Query{Text: "nothing"}, []string{}},
		"trouble":   {status.Query{Trouble: true}, []string{"d8-a/full"}},
		"share":     {status.Query{Sort: status.SortShare}, []string{"d8-a/full", "d8-a/logs", "d8-b/logs", "d8-a/backups"}},
		"used":      {status.Query{Sort: status.SortUsed}, []string{"d8-a/full", "d8-a/backups", "d8-a/logs", "d8-b/logs"}},
		"size":      {status.Query{Sort: status.SortSize}, []string{"d8-a/backups", "d8-a/full", "d8-b/logs", "d8-a/logs"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := status.Look(w, c.query).Buckets
			require.Equal(t, c.want, shown(view))
			require.Equal(t, 4, view.Total)
			require.Equal(t, 1, view.Troubled)
			require.Equal(t, []string{"d8-a", "d8-b"}, view.Namespaces)
		})
	}
}

func TestBucketsArePaged(t *testing.T) {
	t.Parallel()
	w := world(func(w *status.World) {
		w.Buckets = nil
		for i := range 120 {
			w.Buckets = append(w.Buckets, bucket("d8-a", fmt.Sprintf("b-%03d", i), 1<<30, 0))
		}
	})
	cases := map[string]struct {
		page, want, first, last int
		previous, next          string
	}{
		"first":  {0, 1, 1, 50, "", "?page=2&q=b-"},
		"middle": {2, 2, 51, 100, "?q=b-", "?page=3&q=b-"},
		"last":   {3, 3, 101, 120, "?page=2&q=b-", ""},
		"beyond": {99, 3, 101, 120, "?page=2&q=b-", ""},
		"before": {-7, 1, 1, 50, "", "?page=2&q=b-"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := status.Look(w, status.Query{Text: "b-", Page: c.page}).Buckets
			require.Equal(t, []int{c.want, 3, c.first, c.last}, []int{got.Page, got.Pages, got.First, got.Last})
			require.Equal(t, []string{c.previous, c.next}, []string{got.Previous, got.Next})
			require.Equal(t, fmt.Sprintf("d8-a/b-%03d", c.first-1), shown(got)[0])
		})
	}
}

func TestBucketStates(t *testing.T) {
	t.Parallel()
	with := func(change func(*status.Bucket)) status.Bucket {
		b := bucket("d8-a", "b", 1<<30, 900<<20)
		change(&b)
		return b
	}
	cases := map[string]struct {
		reason string
		bucket status.Bucket
		level  status.Level
		state  string
	}{
		"ready":    {"the quiet case", with(func(*status.Bucket) {}), status.Good, "Ready"},
		"new":      {"nobody has looked at it", with(func(b *status.Bucket) { b.Ready = status.Condition{} }), status.Unknown, "Not seen yet"},
		"waiting":  {"the store is at fault, which is told once", with(func(b *status.Bucket) { b.Ready.Status, b.Ready.Reason = "False", "WaitingForStorage" }), status.Idle, "Waiting for the store"},
		"error":    {"somebody must look", with(func(b *status.Bucket) { b.Ready.Status, b.Ready.Reason = "False", "BackendError" }), status.Bad, "Not ready: backend error"},
		"deleting": {"it goes on by itself", with(func(b *status.Bucket) { b.Deleting = true }), status.Busy, "Being deleted"},
		"near":     {"before it is too late", with(func(b *status.Bucket) { b.Quota.Reason = "NearQuota" }), status.Warn, "Nearly full"},
		"full":     {"writes are refused", full(), status.Warn, "Full"},
		"lost":     {"it is empty, and was not", with(func(b *status.Bucket) { b.DataLost = status.Condition{Type: "DataLost", Status: "True"} }), status.Warn, "Ready, its data was lost"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := status.Look(world(buckets(c.bucket)), status.Query{}).Buckets.Rows[0]
			require.Equal(t, c.level, row.Level, c.reason)
			require.Equal(t, c.state, row.State, c.reason)
		})
	}
}

func TestRowSpellsNumbers(t *testing.T) {
	t.Parallel()
	b := bucket("d8-a", "b", 3<<30, 1<<20)
	b.Objects, b.MaxObjects = 1234567, 2000000
	row := status.Look(world(buckets(b)), status.Query{}).Buckets.Rows[0]
	require.Equal(t, []string{"1 MiB", "3 GiB", "< 1 %", "1\u00a0234\u00a0567 of 2\u00a0000\u00a0000"}, []string{row.Used, row.Size, row.ShareText, row.Objects})
	b.Used = 4 << 30
	row = status.Look(world(buckets(b)), status.Query{}).Buckets.Rows[0]
	require.Equal(t, int64(100), row.Share, "the bar ends where the quota does")
	require.Equal(t, "133 %", row.ShareText)
	b.Counted = false
	require.False(t, status.Look(world(buckets(b)), status.Query{}).Buckets.Rows[0].Counted)
	for bytes, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 10 << 20: "10 MiB", 5 << 40: "5 TiB"} {
		require.Equal(t, want, status.Bytes(bytes))
	}
	require.Equal(t, "-1\u00a0000", status.Number(-1000))
}
