package layout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/layout"
)

// proveLiving is a story about two nodes of three: the third, c, cannot be asked.
func proveLiving(t *testing.T) *proving {
	t.Helper()
	p := prove(t)
	p.absent, p.accounts = "c", p.accounts[:2]
	for _, name := range []string{"a", "b"} {
		p.on(name, func(a *layout.Account) {
			a.AllConnected, a.Quorate, a.Sees = false, true, map[string]bool{"a": true, "b": true}
		})
	}
	return p
}

func TestTheGateOfTheLiving(t *testing.T) {
	proveLiving(t).nearly().after(10 * time.Second).after(time.Second).opens()
	cases := map[string]struct {
		reason string
		story  func(p *proving)
		want   string
	}{
		"the third one is seen": {
			"it lives: the proof of all takes the place of this one",
			func(p *proving) {
				p.on("b", func(a *layout.Account) { a.Sees = map[string]bool{"a": true, "b": true, "c": true} })
			},
			"b is connected to c after all",
		},
		"they do not see each other": {
			"a comparison with the third one would count instead",
			func(p *proving) { p.on("a", func(a *layout.Account) { a.Sees = map[string]bool{"a": true} }) }, "a is not connected to b",
		},
		"no quorum": {"a partition has only one copy", func(p *proving) { p.on("a", func(a *layout.Account) { a.Quorate = false }) }, "a has no quorum"},
		"an older layout is live": {
			"copies may still lie elsewhere", func(p *proving) { p.on("b", func(a *layout.Account) { a.Draining = true }) }, "b has not taken over",
		},
		"one is silent": {"its copies are unknown", func(p *proving) { p.on("b", func(a *layout.Account) { a.Silence = "timeout" }) }, "b does not tell"},
		"a block is lacked": {
			"only the absent one may have it", func(p *proving) { p.on("a", func(a *layout.Account) { a.FailedBlocks, a.LackedBlocks = 1, 1 }) }, "could not be copied",
		},
		"one restarts": {"its queues know nothing", func(p *proving) { p.on("a", func(a *layout.Account) { a.Run = "run-2" }) }, "compare their tables"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := proveLiving(t).nearly()
			c.story(p)
			p.after(10 * time.Second).after(time.Second)
			assert.False(t, p.gate.Open, c.reason)
			assert.Contains(t, p.gate.Message, c.want, c.reason)
		})
	}
	p := proveLiving(t).nearly()
	p.on("a", func(a *layout.Account) { a.FailedBlocks = 7 })
	p.after(10 * time.Second).after(time.Second)
	require.True(t, p.gate.Open, "deletions fail as long as the third one is away: %s", p.gate.Message)

	p = prove(t).nearly()
	p.absent, p.accounts = "c", proveLiving(t).accounts
	p.after(10*time.Second).wants(layout.CompareAll, "begin to compare")
}
