package revocation

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/sts"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func issued(account string, p access.Permission, expires time.Time) sts.Issued {
	return sts.Issued{
		Identity:  sts.Identity{Username: "system:serviceaccount:d8-app:" + account, UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
		Namespace: "d8-app", Name: "data", Bucket: "d8-app-data-abc", Permission: p, Expires: expires,
	}
}

func TestLedgerWritesABusyClientDownOnceInASlot(t *testing.T) {
	ledger := NewLedger(5*time.Minute, func() time.Time { return noon })
	end := noon.Add(30 * time.Minute)
	for second := range 100 {
		ledger.Note(issued("app", access.Read, end.Add(time.Duration(second)*time.Second)))
	}
	fresh, dropped := ledger.take()
	require.Zero(t, dropped)
	require.Equal(t, []Holding{{
		User: "system:serviceaccount:d8-app:app", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}},
		Namespace: "d8-app", Name: "data", Bucket: "d8-app-data-abc", Permission: access.Read, Until: noon.Add(35 * time.Minute),
	}}, fresh)

	ledger.Note(issued("app", access.Read, end.Add(2*time.Minute)))
	fresh, _ = ledger.take()
	require.Empty(t, fresh, "it is written down already")
	ledger.Note(issued("app", access.Write, end))
	fresh, _ = ledger.take()
	require.Len(t, fresh, 1)
	require.Equal(t, access.ReadWrite, fresh[0].Permission, "all that any of its keys may do")
	ledger.Note(issued("app", access.Read, end.Add(5*time.Minute)))
	fresh, _ = ledger.take()
	require.Len(t, fresh, 1, "its keys live longer than was written down")
	require.Equal(t, access.ReadWrite, fresh[0].Permission)
}

func TestLedgerForgetsWhatHasExpired(t *testing.T) {
	now := noon
	ledger := NewLedger(time.Minute, func() time.Time { return now })
	ledger.Note(issued("app", access.Read, noon.Add(time.Minute)))
	ledger.take()
	now = noon.Add(time.Hour)
	ledger.take()
	require.Empty(t, ledger.known)
}

func TestLedgerIsBounded(t *testing.T) {
	ledger := NewLedger(time.Minute, func() time.Time { return noon })
	for i := range maxHoldings + 5 {
		ledger.Note(issued(fmt.Sprint(i), access.Read, noon.Add(time.Hour)))
	}
	fresh, dropped := ledger.take()
	assert.Len(t, fresh, maxHoldings)
	assert.Equal(t, 5, dropped)
	_, dropped = ledger.take()
	assert.Zero(t, dropped, "told once")
}

func TestLedgerKeepsWhatCouldNotBeWritten(t *testing.T) {
	ledger := NewLedger(time.Minute, func() time.Time { return noon })
	ledger.Note(issued("app", access.Read, noon.Add(time.Hour)))
	fresh, _ := ledger.take()
	ledger.Note(issued("app", access.Write, noon.Add(time.Hour)))
	ledger.giveBack(fresh)
	fresh, _ = ledger.take()
	require.Len(t, fresh, 1)
	require.Equal(t, access.ReadWrite, fresh[0].Permission)
}

func TestVerdict(t *testing.T) {
	cases := map[string]struct {
		reason        string
		before        verdict
		held, granted access.Permission
		want          verdict
	}{
		"as it was":          {reason: "nothing changed", held: access.ReadWrite, granted: access.ReadWrite},
		"refused once":       {reason: "an apiserver that starts refuses all", held: access.ReadWrite, granted: access.Read, want: verdict{doubted: access.Write}},
		"refused twice":      {reason: "it is so", before: verdict{doubted: access.Write}, held: access.ReadWrite, granted: access.Read, want: verdict{lost: access.Write}},
		"one more":           {reason: "each right has its doubt", before: verdict{lost: access.Write}, held: access.ReadWrite, want: verdict{lost: access.Write, doubted: access.Read}},
		"still lost":         {reason: "nothing changed", before: verdict{lost: access.Write}, held: access.ReadWrite, granted: access.Read, want: verdict{lost: access.Write}},
		"given back":         {reason: "at once", before: verdict{lost: access.Write}, held: access.ReadWrite, granted: access.ReadWrite},
		"doubt was wrong":    {reason: "the next doubt begins anew", before: verdict{doubted: access.Read}, held: access.Read, granted: access.Read},
		"more than was held": {reason: "only what keys may do counts", held: access.Read, granted: access.ReadWrite},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, c.before.next(c.held, c.granted), c.reason)
		})
	}
}

func TestPace(t *testing.T) {
	for lifetime, want := range map[time.Duration]Pace{
		30 * time.Minute: {Tick: 10 * time.Second, Rounds: 3, Slot: 5 * time.Minute},
		30 * time.Second: {Tick: time.Second, Rounds: 3, Slot: 5 * time.Second},
		time.Second:      {Tick: time.Second, Rounds: 3, Slot: time.Second},
	} {
		pace := PaceFor(lifetime)
		require.Equal(t, want, pace)
		// Written down, found in a review of everybody, confirmed, each a tick late at the most.
		require.LessOrEqual(t, pace.Tick*time.Duration(1+pace.Rounds+1), time.Minute)
	}
}
