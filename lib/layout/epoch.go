package layout

import (
	"fmt"
	"slices"
	"strings"
)

// Runner is a Pod of a plane as far as a change of the epoch goes.
type Runner struct {
	Pod string
	// Epoch that the Pod was made for, 0 while there is no Pod.
	Epoch  int
	Exists bool // there is a Pod that is not on its way out
	Runs   bool // its Garage process runs
	Up     bool // connected to the node that was asked
	// Keeps tells that the replica has the only role in the new epoch.
	Keeps bool
}

// Crossing is all that a change of the epoch depends on.
type Crossing struct {
	Epoch int // that is wanted
	// GivesUp tells that the new epoch has fewer copies than the one before.
	GivesUp bool
	// Handed is the last epoch that may begin, since all tables were equal, with no write on its way, when it did.
	Handed int
	// Begun tells that replicas are being stopped after the hand-over, whether or not their Pods show it yet.
	Begun   bool
	Runners []Runner
}

// CrossKind is the kind of a Cross.
type CrossKind int

// The kinds.
const (
	Arrived  CrossKind = iota // all Pods run in the wanted epoch
	Linger                    // nothing is restarted now
	HandOver                  // hold writes and make tables equal; then Handed, then look again
	Cross                     // restart Pods
	Spoil                     // the new epoch must not begin: one replica was restarted before it was handed everything
)

// Crosswise is the next step from one epoch into the next.
type Crosswise struct {
	Kind    CrossKind
	Pods    []string // of Cross
	Message string   // one sentence; empty when arrived
}

// CrossOver decides how a plane goes from one epoch into the next. Nodes of two epochs cannot meet, so it is all at
// once, and what a replica has not got before it crosses, it gets in no other way. The ladder:
//
//	no Pod of an earlier epoch                Arrived
//
// more copies: nothing is given up, the old replica has everything and crosses with it
//
//	none has crossed, one does not run        Linger: without it there would be no layout
//	otherwise                                 Cross all
//
// fewer copies: what is acknowledged in the old epoch must have reached the replica that stays
//
//	it has crossed, or is about to,
//	or another one has, without hand-over     Spoil
//	handed over, another one has crossed      Cross the others, and the one that stays last, when it is alone: then
//	                                          nothing can be acknowledged without it at any moment
//	otherwise                                 HandOver
func CrossOver(c Crossing) Crosswise {
	behind := c.pods(c.behind)
	switch {
	case len(behind) == 0:
		return Crosswise{}
	case c.GivesUp:
		return c.giveUp()
	}
	missing := c.pods(func(r Runner) bool { return !r.Exists || !r.Runs })
	if len(c.pods(c.across)) == 0 && len(missing) > 0 {
		return Crosswise{Kind: Linger, Message: "All replicas are to be restarted at once with more copies, which waits for " + strings.Join(missing, ", ") + "."}
	}
	return Crosswise{Kind: Cross, Pods: behind, Message: "All replicas are restarted at once with more copies."}
}

// giveUp is the ladder of fewer copies.
func (c Crossing) giveUp() Crosswise {
	others := c.others()
	behind, crossed, stopping := others.pods(c.behind), others.pods(c.across), others.pods(c.goesOn)
	stays := slices.IndexFunc(c.Runners, func(r Runner) bool { return r.Keeps && c.behind(r) })
	handed := c.Handed == c.Epoch
	switch {
	case stays < 0:
		return c.spoil("the one that stays")
	case !handed && len(crossed) > 0:
		return c.spoil(strings.Join(crossed, ", "))
	case !handed || !others.underWay():
		return Crosswise{Kind: HandOver, Message: fmt.Sprintf("Writes wait for a moment until %s has everything that the others have.", c.Runners[stays].Pod)}
	case len(behind) > 0:
		return Crosswise{Kind: Cross, Pods: behind, Message: "All replicas are restarted at once with fewer copies."}
	case len(stopping) > 0:
		return Crosswise{Kind: Linger, Message: "All replicas are restarted at once with fewer copies; these still stop: " + strings.Join(stopping, ", ") + "."}
	}
	return Crosswise{Kind: Cross, Pods: []string{c.Runners[stays].Pod}, Message: "All replicas are restarted at once with fewer copies."}
}

// others is the crossing without the replica that stays.
func (c Crossing) others() Crossing {
	c.Runners = slices.DeleteFunc(slices.Clone(c.Runners), func(r Runner) bool { return r.Keeps })
	return c
}

// behind tells whether the replica has a Pod of an earlier epoch.
func (c Crossing) behind(r Runner) bool { return r.Exists && r.Epoch < c.Epoch }

// across tells whether the replica has a Pod of the wanted epoch.
func (c Crossing) across(r Runner) bool { return r.Exists && r.Epoch == c.Epoch }

// goesOn tells whether the replica may still acknowledge something in an earlier epoch, even on its way out.
func (c Crossing) goesOn(r Runner) bool { return r.Up && r.Epoch < c.Epoch }

// underWay tells whether a replica was stopped after the hand-over. With none stopped, the hand-over may be of before a
// crash, and writes have gone on since.
func (c Crossing) underWay() bool {
	return c.Begun || slices.ContainsFunc(c.Runners, func(r Runner) bool { return !r.Exists || c.across(r) })
}

func (c Crossing) spoil(who string) Crosswise {
	return Crosswise{Kind: Spoil, Message: fmt.Sprintf("A restart of %s came before the others had handed over; the three are put together again.", who)}
}

func (c Crossing) pods(keep func(Runner) bool) []string {
	var found []string
	for _, r := range c.Runners {
		if keep(r) {
			found = append(found, r.Pod)
		}
	}
	return found
}

// Equal goes on with a proof up to the point where all tables are equal: rungs 1 and 2 of Prove. Blocks that are missing
// by then are known to those that lack them.
func Equal(p Proof, e Evidence) Gate {
	gate := Prove(p, e)
	if !gate.Proof.Synced.IsZero() {
		return Gate{Open: true, Proof: gate.Proof, Message: "all tables are equal"}
	}
	return gate
}
