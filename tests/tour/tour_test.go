package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/tour/load"
)

func TestHowLongATourIs(t *testing.T) {
	cases := map[string]struct {
		reason string
		o      options
		played int
		length time.Duration
		want   bool
	}{
		"the second round":       {"each scenario is played twice, however long that takes", options{times: 2, least: time.Hour}, 5, 2 * time.Hour, true},
		"an hour is not over":    {"it goes on after two rounds", options{times: 2, least: time.Hour}, 6, time.Minute, true},
		"twice and an hour":      {"all is done", options{times: 2, least: time.Hour}, 6, time.Hour, false},
		"no time is left":        {"the limit holds in the middle of a round", options{times: 2, most: time.Minute}, 1, time.Minute, false},
		"once and no least time": {"the short form", options{times: 1}, 3, time.Second, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, c.o.another(c.played, 3, c.length), c.reason)
		})
	}
}

func TestFindingsAreCountedByKind(t *testing.T) {
	require.Equal(t, "2 LOST, 1 RESURRECTED", kinds([]load.Finding{{Kind: load.Resurrected}, {Kind: load.Lost}, {Kind: load.Lost}}))
}
