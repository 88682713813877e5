package scenario_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/tour/scenario"
)

func TestEveryScenarioIsFoundByItsName(t *testing.T) {
	all, unknown := scenario.Choose("")
	require.Empty(t, unknown)
	for _, s := range all {
		found, unknown := scenario.Choose(s.Name)
		require.Empty(t, unknown)
		require.Len(t, found, 1)
		require.Equal(t, s.About, found[0].About, "two scenarios are called %s", s.Name)
		require.NotNil(t, s.Play)
	}
	_, unknown = scenario.Choose("roll,dance")
	require.Equal(t, []string{"dance"}, unknown)
}

func TestWhatClientsMaySee(t *testing.T) {
	seen := map[string]int{"PutObject InsufficientStorage": 3, "DeleteObject InsufficientStorage": 1}
	cases := map[string]struct {
		reason string
		s      scenario.Scenario
		want   []string
	}{
		"nothing is promised": {"a store of three bears it", scenario.Scenario{}, []string{"DeleteObject InsufficientStorage", "PutObject InsufficientStorage"}},
		"a full volume":       {"deletes go through", scenario.Scenario{Refusals: []string{"PutObject InsufficientStorage"}}, []string{"DeleteObject InsufficientStorage"}},
		"an outage":           {"anything may fail", scenario.Scenario{Outage: "nobody is there"}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.s.Unexpected(seen), c.reason) })
	}
}
