package layout_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/deckhouse/system-s3/lib/layout"
)

func TestTune(t *testing.T) {
	scrub := func(state string, paused bool) []layout.Worker {
		return []layout.Worker{{Name: "object sync", State: "busy"}, {Name: "Block scrub worker", State: state, Paused: paused}}
	}
	usual, fast := layout.Speed{Workers: 1, Tranquility: 2}, layout.Speed{Workers: 4}
	cases := map[string]struct {
		reason  string
		filling bool
		workers []layout.Worker
		speed   layout.Speed
		command layout.ScrubCommand
	}{
		"at rest":                      {"as Garage comes", false, scrub("idle", false), usual, layout.LeaveScrub},
		"a check runs":                 {"it harms nobody", false, scrub("busy", false), usual, layout.LeaveScrub},
		"filling":                      {"with all it has", true, scrub("idle", false), fast, layout.LeaveScrub},
		"filling while a check runs":   {"the disks are read for what is missing", true, scrub("throttled", false), fast, layout.PauseScrub},
		"filling, the check is paused": {"once is enough", true, scrub("busy", true), fast, layout.LeaveScrub},
		"filled, the check is paused":  {"whoever paused it may be gone", false, scrub("idle", true), usual, layout.ResumeScrub},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			speed, command := layout.Tune(c.filling, c.workers)
			assert.Equal(t, c.speed, speed, c.reason)
			assert.Equal(t, c.command, command, c.reason)
		})
	}
}

func TestFill(t *testing.T) {
	account := func(name string, objects, blocks, queue int) layout.Account {
		return layout.Account{Name: name, Blocks: blocks, Queue: queue, Tables: []layout.Table{{Name: "version", Items: 7}, {Name: "object", Items: objects}}}
	}
	progress, known := layout.Fill("c", []layout.Account{account("a", 100, 50, 3), account("b", 90, 60, 0), account("c", 80, 40, 25)})
	assert.True(t, known)
	assert.Equal(t, layout.Progress{Objects: 80, ObjectsTotal: 100, Blocks: 15, BlocksTotal: 60}, progress)
	assert.Equal(t, 25, progress.Percent(), "of what is behind most")

	progress, _ = layout.Fill("c", []layout.Account{account("a", 0, 0, 0), account("c", 3, 2, 0)})
	assert.Equal(t, 100, progress.Percent(), "nothing to fill, and never more than all")
	_, known = layout.Fill("c", []layout.Account{account("a", 1, 1, 0), {Name: "c", Silence: "timeout"}})
	assert.False(t, known)
	_, known = layout.Fill("c", []layout.Account{account("a", 1, 1, 0)})
	assert.False(t, known)
}
