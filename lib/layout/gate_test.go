package layout_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/layout"
)

const delay = 2 * time.Minute // 2 x rpc_timeout_msec of production

// proving is a story about three nodes whose copies are to be proven whole: what they tell changes, time passes, and
// the gate is looked at after each.
type proving struct {
	t        *testing.T
	now      time.Time
	accounts []layout.Account
	absent   string
	unneeded int // of each node's failed blocks, once somebody looks at them
	proof    layout.Proof
	gate     layout.Gate
}

// quiet is a node that has nothing to do.
func quiet(name string) layout.Account {
	return layout.Account{
		Name: name, Run: "run-1 of " + name, AllConnected: true,
		Tables: []layout.Table{{Name: "object"}, {Name: "block_ref"}},
		Workers: []layout.Worker{
			{ID: 1, Name: "Block resync queue deferred worker", State: "idle"},
			{ID: 2, Name: "Block resync worker #1", State: "idle", Queue: 7}, // deletions of the future
			{ID: 3, Name: "Block resync worker #2", State: "idle", Disabled: true},
			{ID: 4, Name: "object sync", State: "idle"},
			{ID: 5, Name: "block_ref sync", State: "idle"},
		},
	}
}

func prove(t *testing.T) *proving {
	t.Helper()
	return &proving{
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		accounts: []layout.Account{quiet("a"), quiet("b"), quiet("c")},
	}
}

func (p *proving) look() *proving {
	p.t.Helper()
	evidence := layout.Evidence{Now: p.now, Delay: delay, Accounts: p.accounts, Absent: p.absent}
	p.gate = layout.Prove(p.proof, evidence)
	if p.gate.Examine {
		evidence.Accounts = p.examined()
		p.gate = layout.Prove(p.gate.Proof, evidence)
	}
	p.proof = p.gate.Proof
	return p
}

// examined is what the nodes tell without the failed blocks that nobody needs.
func (p *proving) examined() []layout.Account {
	examined := slices.Clone(p.accounts)
	for i := range examined {
		a := &examined[i]
		a.Examined, a.FailedBlocks, a.LackedBlocks = true, max(0, a.FailedBlocks-p.unneeded), max(0, a.LackedBlocks-p.unneeded)
	}
	return examined
}

func (p *proving) after(d time.Duration) *proving { p.now = p.now.Add(d); return p.look() }

// on changes what a node tells.
func (p *proving) on(name string, change func(*layout.Account)) *proving {
	i := slices.IndexFunc(p.accounts, func(a layout.Account) bool { return a.Name == name })
	p.accounts[i].Workers = slices.Clone(p.accounts[i].Workers)
	p.accounts[i].Tables = slices.Clone(p.accounts[i].Tables)
	change(&p.accounts[i])
	return p
}

func (p *proving) worker(node, name string, change func(*layout.Worker)) *proving {
	return p.on(node, func(a *layout.Account) {
		i := slices.IndexFunc(a.Workers, func(w layout.Worker) bool { return w.Name == name })
		change(&a.Workers[i])
	})
}

// repairsEnd lets all nodes look through their blocks.
func (p *proving) repairsEnd() *proving {
	for _, each := range p.accounts {
		p.on(each.Name, func(a *layout.Account) {
			a.Workers = append(a.Workers, layout.Worker{ID: 50 + len(a.Workers), Name: "Block repair worker", State: "done"})
		})
	}
	return p
}

// compared goes up to where the nodes were asked to look for missing blocks.
func (p *proving) compared() *proving { return p.look().after(6 * time.Second) }

// found goes from the end of the search for missing blocks to where it counts who copies.
func (p *proving) found() *proving { return p.look().after(delay + 10*time.Second).after(time.Second) }

// nearly goes up to right before the end of the delay.
func (p *proving) nearly() *proving {
	return p.compared().repairsEnd().after(delay)
}

func busy(w *layout.Worker)  { w.State = "busy" }
func rests(w *layout.Worker) { w.State, w.Queue = "idle", 0 }

func (p *proving) wants(request layout.Request, message string) {
	p.t.Helper()
	assert.False(p.t, p.gate.Open, p.gate.Message)
	assert.Equal(p.t, request, p.gate.Request)
	assert.Contains(p.t, p.gate.Message, message)
}

func (p *proving) opens() {
	p.t.Helper()
	assert.True(p.t, p.gate.Open, p.gate.Message)
}

func TestTheGateOpens(t *testing.T) {
	p := prove(t)
	p.look().wants(layout.CompareAll, "begin to compare")
	p.after(time.Second).wants(layout.NoRequest, "compare their tables")
	p.after(5*time.Second).wants(layout.FindBlocks, "look for blocks")
	p.after(time.Second).wants(layout.NoRequest, "a looks for blocks")
	p.repairsEnd().after(time.Second).wants(layout.NoRequest, "delay")
	p.after(delay+5*time.Second).wants(layout.NoRequest, "being copied")
	p.after(time.Second).opens()
}

func TestTheGateIsNotFooled(t *testing.T) {
	cases := map[string]struct {
		reason string
		story  func(p *proving)
		want   string // part of the message
	}{
		"a node is silent": {
			"only the node itself knows its copies",
			func(p *proving) {
				p.nearly().on("b", func(a *layout.Account) { a.Silence = "timeout" }).after(time.Minute)
			},
			"b does not tell how far it is: timeout",
		},
		"no node is known": {
			"an empty list is not a whole one", func(p *proving) { p.accounts = nil; p.look() }, "no node is known",
		},
		"a node is not connected": {
			"what it lacks is not in its queues",
			func(p *proving) {
				p.nearly().on("c", func(a *layout.Account) { a.AllConnected = false }).after(time.Minute)
			},
			"c is not connected",
		},
		"an old layout is live": {
			"data may still be on its way",
			func(p *proving) { p.nearly().on("a", func(a *layout.Account) { a.Draining = true }).after(time.Minute) },
			"not taken over the present layout",
		},
		"a node restarted in between": {
			"its queues are empty because it knows nothing yet",
			func(p *proving) { p.nearly().on("c", func(a *layout.Account) { a.Run = "run-2" }).after(time.Minute) },
			"begin to compare",
		},
		"a node whose process is not known": {
			"it may be another one each time",
			func(p *proving) { p.on("c", func(a *layout.Account) { a.Run = "" }).nearly().after(time.Hour) },
			"begin to compare",
		},
		"the comparison was just asked for": {
			"workers are idle because they have not begun", func(p *proving) { p.look().after(4 * time.Second) }, "compare their tables",
		},
		"a table is being compared": {
			"block references are still coming in",
			func(p *proving) { p.worker("b", "block_ref sync", busy).look().after(time.Hour) },
			"still at it: table block_ref of b",
		},
		"a synchroniser has more to do": {
			"it rests between two partitions",
			func(p *proving) {
				p.worker("b", "object sync", func(w *layout.Worker) { w.Queue = 3 }).look().after(time.Hour)
			},
			"still at it: table object of b",
		},
		"entries wait to be sent": {
			"other nodes do not have them",
			func(p *proving) {
				p.on("a", func(a *layout.Account) { a.Tables[1].InsertQueue = 1 }).look().after(time.Hour)
			},
			"still at it: queues of table block_ref of a",
		},
		"entries are not in the tree": {
			"the comparison did not see them",
			func(p *proving) {
				p.on("a", func(a *layout.Account) { a.Tables[0].MerkleQueue = 1 }).look().after(time.Hour)
			},
			"still at it: queues of table object of a",
		},
		"a comparison failed": {
			"the table is not equal",
			func(p *proving) {
				p.look()
				p.worker("c", "object sync", func(w *layout.Worker) { w.Errors = 1 }).after(10 * time.Second)
			},
			"table object on c failed",
		},
		"the workers have other names": {
			"a Garage that is not understood proves nothing",
			func(p *proving) { p.on("a", func(a *layout.Account) { a.Workers = nil }).look().after(time.Hour) },
			"still at it: tables of a",
		},
		"an old block repair is done": {
			"it looked at the time before",
			func(p *proving) {
				p.repairsEnd().compared().after(time.Hour)
			},
			"a looks for blocks",
		},
		"a block repair runs": {
			"not all blocks were looked at",
			func(p *proving) {
				p.compared().repairsEnd().worker("b", "Block repair worker", busy).after(time.Hour)
			},
			"b looks for blocks",
		},
		"a block repair failed": {
			"not all blocks were looked at",
			func(p *proving) {
				p.compared().repairsEnd().worker("b", "Block repair worker", func(w *layout.Worker) { w.Errors = 1 }).after(time.Hour)
			},
			"b could not look through",
		},
		"queues are empty before the delay": {
			"Garage 2.5.0 copies a block only 2 x rpc_timeout after it learnt of it", func(p *proving) { p.nearly() }, "the delay",
		},
		"blocks are deferred": {
			"what was found is not in the queue yet, and those who copy rest",
			func(p *proving) {
				p.worker("c", "Block resync queue deferred worker", busy).nearly().after(time.Hour).after(time.Second)
			},
			"still at it: Block resync queue deferred worker of c",
		},
		"blocks are copied": {
			"some are missing", func(p *proving) {
				p.worker("c", "Block resync worker #1", busy).nearly().after(time.Hour).after(time.Second)
			},
			"still at it: Block resync worker #1 of c",
		},
		"no worker copies blocks": {
			"nothing would be copied",
			func(p *proving) {
				p.worker("c", "Block resync worker #1", func(w *layout.Worker) { w.Disabled = true }).nearly().after(time.Hour).after(time.Second)
			},
			"still at it: Block resync worker of c",
		},
		"blocks failed": {
			"they are missing and wait up to an hour",
			func(p *proving) {
				p.on("b", func(a *layout.Account) { a.FailedBlocks = 1 }).nearly().after(time.Hour).after(time.Second)
			},
			"b has blocks that could not be copied",
		},
		"the clock was put back": {
			"no time is known to have passed",
			func(p *proving) { p.nearly().after(-time.Hour) }, "begin to compare",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := prove(t)
			c.story(p)
			assert.False(t, p.gate.Open, c.reason)
			assert.Contains(t, p.gate.Message, c.want, c.reason)
		})
	}
}

func TestTheGateOpensUnderLoad(t *testing.T) {
	// While clients write, something is in some queue at each look. What counts is that each was seen empty once.
	p := prove(t)
	p.on("a", func(a *layout.Account) { a.Tables[0].InsertQueue = 1 })
	p.on("b", func(a *layout.Account) { a.Tables[0].InsertQueue = 1 }).look().after(10 * time.Second)
	p.on("a", func(a *layout.Account) { a.Tables[0].InsertQueue = 0 }).after(time.Second)
	p.wants(layout.NoRequest, "queues of table object of b")
	p.on("b", func(a *layout.Account) { a.Tables[0].InsertQueue = 0 }).
		on("a", func(a *layout.Account) { a.Tables[0].InsertQueue = 1 }).after(time.Second)
	p.wants(layout.FindBlocks, "begin to look")

	// It is never empty either, and rests while nothing in it is older than two seconds.
	p.worker("a", "Block resync queue deferred worker", func(w *layout.Worker) { w.Queue = 9 })
	p.repairsEnd().worker("a", "Block resync worker #1", busy).found()
	p.wants(layout.NoRequest, "Block resync worker #1 of a")
	p.worker("a", "Block resync worker #1", rests).worker("b", "Block resync worker #1", busy).after(time.Second)
	p.opens()
}

func TestTheGateStartsOverAfterAFailedComparison(t *testing.T) {
	p := prove(t).look()
	p.worker("c", "object sync", func(w *layout.Worker) { w.Errors, w.LastError = 1, time.Second })
	p.after(10*time.Second).wants(layout.NoRequest, "failed and is begun again")
	p.after(time.Minute).wants(layout.CompareAll, "begin to compare")
	p.worker("c", "object sync", func(w *layout.Worker) { w.LastError = time.Hour }) // older than what was asked
	p.after(6*time.Second).wants(layout.FindBlocks, "")
}

func TestFailedBlocksAreTriedAgainAndLookedFor(t *testing.T) {
	p := prove(t).on("b", func(a *layout.Account) { a.FailedBlocks = 2 }).compared().repairsEnd()
	p.found().wants(layout.RetryFailed, "b has blocks")
	// Garage has forgotten the failures and not begun to copy: its workers rest, no block has failed, one is missing.
	p.on("b", func(a *layout.Account) { a.FailedBlocks = 0 })
	p.after(time.Second).wants(layout.FindBlocks, "begin to look")
	p.on("b", func(a *layout.Account) { a.FailedBlocks = 2 }).repairsEnd()
	p.found().wants(layout.RetryFailed, "b has blocks")
	p.after(time.Second).wants(layout.FindBlocks, "begin to look")
	p.on("b", func(a *layout.Account) { a.FailedBlocks = 0 }).repairsEnd().found().opens()
}

// What an upload that was killed has left behind is nowhere, and nobody was promised it.
func TestBlocksThatNobodyNeedsDoNotCount(t *testing.T) {
	p := prove(t).on("b", func(a *layout.Account) { a.FailedBlocks = 2 }).on("c", func(a *layout.Account) { a.FailedBlocks = 2 })
	p.unneeded = 2
	p.compared().repairsEnd().found().opens()

	p = prove(t).on("b", func(a *layout.Account) { a.FailedBlocks = 2 }).on("c", func(a *layout.Account) { a.FailedBlocks = 3 })
	p.unneeded = 2
	p.compared().repairsEnd().found().wants(layout.RetryFailed, "c has blocks")

	p = prove(t).on("b", func(a *layout.Account) { a.FailedBlocks = 2 })
	p.unneeded = 2
	p.compared().repairsEnd().look().after(delay + 10*time.Second)
	p.on("b", func(a *layout.Account) { a.Silence = "its failed blocks cannot be looked at" }).after(time.Second)
	p.wants(layout.NoRequest, "b does not tell")
}

func TestWhoCopiesCountsOnlyOnceAllIsQueued(t *testing.T) {
	p := prove(t).worker("c", "Block resync queue deferred worker", busy).nearly().after(time.Minute)
	p.wants(layout.NoRequest, "deferred worker of c") // the worker that copies rests meanwhile, and is woken by what comes
	p.worker("c", "Block resync queue deferred worker", rests).worker("c", "Block resync worker #1", busy).after(time.Second)
	p.after(time.Second).wants(layout.NoRequest, "Block resync worker #1 of c")
	p.worker("c", "Block resync worker #1", rests).after(time.Second).opens()
}

func TestProveLeavesThePreviousProofAlone(t *testing.T) {
	p := prove(t).look()
	before := p.proof
	p.after(time.Second)
	require.Empty(t, before.Seen, "a proof that a crashed pass came with is used again")
}
