package layout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/deckhouse/system-s3/lib/layout"
)

// street is a story about replicas and the nodes that they live on.
type street struct{ layout.Scene }

const tierLabel = "role/s3"

// tiedStreet has so many replicas, each on a node of the tier that its volume is tied to, and two more nodes of the
// tier; everything was proven long ago.
func tiedStreet(replicas int) street {
	s := street{layout.Scene{
		Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Pause: 10 * time.Minute, Label: tierLabel, WaysOut: "add nodes",
	}}
	s.Moved = s.Now.Add(-time.Hour)
	for i := range replicas {
		node := fmt.Sprintf("node-%d", i)
		s.Places = append(s.Places, layout.Place{Name: node, InTier: true, Ready: true})
		s.Residents = append(s.Residents, layout.Resident{
			Replica: layout.Replica{Pod: fmt.Sprintf("s3-%d", i), Exists: true, Ready: true}, Node: node, Up: true,
			Volume: layout.Volume{Claim: fmt.Sprintf("data-s3-%d", i), Bound: true, Homes: []string{node}, Whole: true},
		})
	}
	return s.newNode("node-8").newNode("node-9")
}

// network is the same on volumes that every node can use.
func network(replicas int) street {
	s := tiedStreet(replicas)
	for i := range s.Residents {
		s.Residents[i].Volume.Anywhere, s.Residents[i].Volume.Homes = true, nil
	}
	return s
}

func (s street) newNode(name string) street {
	s.Places = append(s.Places, layout.Place{Name: name, InTier: true, Ready: true})
	return s
}

func (s street) node(name string, change func(*layout.Place)) street {
	s.Places = slices.Clone(s.Places)
	change(&s.Places[slices.IndexFunc(s.Places, func(p layout.Place) bool { return p.Name == name })])
	return s
}

func (s street) replica(i int, change func(*layout.Resident)) street {
	s.Residents = slices.Clone(s.Residents)
	change(&s.Residents[i])
	return s
}

func (s street) outOfTier(names ...string) street {
	for _, name := range names {
		s = s.node(name, func(p *layout.Place) { p.InTier = false })
	}
	return s
}

func (s street) notReady(name string) street {
	return s.node(name, func(p *layout.Place) { p.Ready = false })
}

func (s street) closed(name, why string) street {
	return s.node(name, func(p *layout.Place) { p.Closed = why })
}

// deleted takes the Node object away.
func (s street) deleted(name string) street {
	s.Places = slices.DeleteFunc(slices.Clone(s.Places), func(p layout.Place) bool { return p.Name == name })
	s.Residents = slices.Clone(s.Residents)
	for i := range s.Residents {
		if v := &s.Residents[i].Volume; slices.Contains(v.Homes, name) {
			v.Homes, v.Missing = nil, []string{name}
		}
	}
	return s
}

func (s street) down(i int) street {
	return s.replica(i, func(r *layout.Resident) { r.Up, r.Ready = false, false })
}

func (s street) pending(i int) street {
	return s.down(i).replica(i, func(r *layout.Resident) { r.Node = "" })
}

func (s street) outdated() street {
	for i := range s.Residents {
		s = s.replica(i, func(r *layout.Resident) { r.Outdated = true })
	}
	return s
}

func (s street) emptied(i int) street {
	return s.replica(i, func(r *layout.Resident) { r.Volume.Whole = false })
}

func (s street) claimDeleted(i int) street {
	return s.replica(i, func(r *layout.Resident) { r.Volume.Leaving = true })
}

func (s street) damaged(i int) street {
	return s.down(i).replica(i, func(r *layout.Resident) { r.Volume.Damage = "MDB_INVALID" })
}

func (s street) movedAgo(d time.Duration) street { s.Moved = s.Now.Add(-d); return s }

// turnCase is what a street leads to.
type turnCase struct {
	reason string
	street street
	kind   layout.TurnKind
	pod    string
	living bool
	place  string // reason of the notice
	told   string // part of the notice, or of the turn's message when there is no notice
}

func (c turnCase) check(t *testing.T) {
	t.Helper()
	got := layout.Next(c.street.Scene)
	assert.Equal(t, c.kind, got.Kind, "%s: %+v", c.reason, got)
	assert.Equal(t, c.pod, got.Pod, c.reason)
	assert.Equal(t, c.living, got.Living, c.reason)
	assert.Equal(t, c.place, got.Place.Reason, "%s: %s", c.reason, got.Place.Message)
	assert.Contains(t, got.Place.Message+got.Message, c.told, c.reason)
}

func checkAll(t *testing.T, cases map[string]turnCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, c.check)
	}
}

func TestATiedReplicaOfThree(t *testing.T) {
	s := tiedStreet(3)
	const (
		moves  = layout.ReasonRelocating
		pinned = layout.ReasonReplicaPinned
	)
	checkAll(t, map[string]turnCase{
		"all is well": {reason: "the quiet case", street: s},
		"the label is removed": {
			reason: "F6: a new volume, with proof of all", street: s.outOfTier("node-1"), kind: layout.Renew, pod: "s3-1", place: moves,
			told: "s3-1 gets a new volume on node-8 or node-9 and is filled from the other replicas, because node-1 does not carry the label role/s3",
		},
		"another tier appears": {
			reason: "F1, F6: one after the other", street: s.outOfTier("node-0", "node-1", "node-2"), kind: layout.Renew, pod: "s3-2", place: moves,
			told: "because node-2 does not carry the label",
		},
		"the tier changes and with it the template": {
			reason: "the move comes before the restart, after which it would be Pending", street: s.outOfTier("node-0", "node-1", "node-2").outdated(),
			kind: layout.Renew, pod: "s3-2", place: moves,
		},
		"another tier has one node": {
			reason: "one replica moves there", street: s.outOfTier("node-0", "node-1", "node-2").deleted("node-9"), kind: layout.Renew, pod: "s3-2", place: moves,
			told: "on node-8 and",
		},
		"no free node in the tier": {
			reason: "F3: it goes on where it is, also when the template changes", street: s.outOfTier("node-1", "node-8", "node-9").outdated(),
			kind: layout.ReplaceProof, pod: "s3-2", place: layout.ReasonPlacementBlocked, told: "no node with the label role/s3 is free for it. Ways out: add nodes.",
		},
		"nobody would come back": {
			reason: "the roll leaves them alone", street: s.outOfTier("node-0", "node-1", "node-2", "node-8", "node-9").outdated(), kind: layout.Hold,
			place: layout.ReasonPlacementBlocked, told: "their nodes would not take them back",
		},
		"the move before was a minute ago": {
			reason: "F6: ten minutes", street: s.outOfTier("node-1").movedAgo(time.Minute), place: moves, told: "waits until the newest volume of the store is 10m0s old",
		},
		"the clock was put back": {
			reason: "the future is not long ago", street: s.outOfTier("node-1").movedAgo(-time.Hour), place: moves, told: "waits until the newest volume",
		},
		"another replica is away": {
			reason: "never two away at once", street: s.outOfTier("node-1").down(0), place: moves, told: "waits until s3-0 is up",
		},
		"the node is deleted while the replica runs": {
			reason: "it can still be asked", street: s.deleted("node-1"), kind: layout.Renew, pod: "s3-1", place: moves, told: "the node node-1 does not exist any more",
		},
		"the node is lost for good": {
			reason: "its Node object is deleted: proof of the others", street: s.deleted("node-1").down(1), kind: layout.Renew, pod: "s3-1", living: true, place: moves,
			told: "its volume was tied to node-1, which does not exist any more",
		},
		"the node is lost, its Pod as well": {
			reason: "the Pod garbage collector was quicker", street: s.deleted("node-1").pending(1), kind: layout.Renew, pod: "s3-1", living: true, place: moves,
		},
		"the node is lost, another replica was filled anew since": {
			reason: "the lost one may hold the only copy", street: s.deleted("node-1").down(1).emptied(0), place: pinned,
			told: "s3-0 got an empty volume after all replicas were last proven to hold everything",
		},
		"two nodes are lost": {
			reason: "no quorum, no proof", street: s.deleted("node-1").down(1).deleted("node-2").down(2), place: moves, told: "waits until s3-1 is up",
		},
		"the node is lost and there is no other": {
			reason: "the ways out are told", street: s.deleted("node-1").down(1).outOfTier("node-8", "node-9"), place: layout.ReasonPlacementBlocked, told: "Ways out: add nodes.",
		},
		"the node is not ready": {
			reason: "it may come back", street: s.notReady("node-1").down(1), place: pinned,
			told: "s3-1 waits for node-1, to which its volume is tied and which is not ready. Bring it back; if it is lost for good, delete it (kubectl delete node node-1)",
		},
		"the node is not ready and not of the tier": {
			reason: "the label is no proof of the loss", street: s.notReady("node-1").outOfTier("node-1").pending(1), place: pinned, told: "which is not ready",
		},
		"the node is cordoned": {reason: "who runs there runs on", street: s.closed("node-1", "is cordoned")},
		"the node is drained": {
			reason: "its node comes back", street: s.closed("node-1", "is cordoned").pending(1), place: pinned,
			told: "s3-1 waits for node-1, to which its volume is tied and which is cordoned. Let it take Pods again, or take the label role/s3 off it",
		},
		"the node is tainted": {
			reason: "NoExecute threw the Pod out", street: s.closed("node-1", "has the taint maintenance:NoExecute").pending(1), place: pinned, told: "has the taint maintenance:NoExecute",
		},
		"drained and out of the tier": {
			reason: "it does not come back there: proof of the others", street: s.closed("node-1", "is cordoned").outOfTier("node-1").pending(1),
			kind: layout.Renew, pod: "s3-1", living: true, place: moves, told: "its volume is tied to node-1, which does not carry the label",
		},
		"cordoned during a roll": {
			reason: "after a restart it would be Pending", street: s.closed("node-2", "is cordoned").outdated(), kind: layout.ReplaceProof, pod: "s3-1",
		},
		"a full disk": {
			reason: "fullness is a matter of growth", street: s.replica(1, func(r *layout.Resident) { r.Ready, r.Up = false, false }),
		},
		"back after a week": {reason: "same node, same volume", street: s.replica(1, func(r *layout.Resident) { r.Ready = false })},
		"its disk was replaced empty": {
			reason: "it is filled from the others where it is", street: s.emptied(1),
		},
		"a damaged database": {
			reason: "a new volume, with proof of the others", street: s.damaged(1), kind: layout.Renew, pod: "s3-1", living: true, place: moves,
			told: "s3-1 gets a new volume on node-1, node-8 or node-9 and is filled from the other replicas, because its Garage cannot read its database (MDB_INVALID)",
		},
		"a damaged database, another replica not whole": {
			reason: "no proof", street: s.damaged(1).emptied(2), place: pinned, told: "s3-1 is not made anew",
		},
		"two damaged databases": {reason: "no proof", street: s.damaged(1).damaged(2), place: moves, told: "waits until s3-1 is up"},
		"the claim is deleted and the Pod is not": {
			reason: "killed in the middle of a move, or a person's doing: with proof either way", street: s.claimDeleted(1), kind: layout.Renew, pod: "s3-1", place: moves,
			told: "because its claim data-s3-1 is being deleted",
		},
		"the claim is deleted and another replica is away": {
			reason: "whatever ends the Pod ends the volume", street: s.claimDeleted(1).down(2).outdated(), kind: layout.Hold, place: moves, told: "waits until s3-2 is up",
		},
		"the claim is deleted a minute after a move": {
			reason: "no restart in passing", street: s.claimDeleted(1).movedAgo(time.Minute).outdated(), kind: layout.Hold, place: moves, told: "10m0s",
		},
		"the claim and the Pod are deleted": {
			reason: "Kubernetes is at it", street: s.claimDeleted(1).down(1).replica(1, func(r *layout.Resident) { r.Exists = false }).outdated(),
			kind: layout.Hold, place: moves, told: "its Pod ends, and its claim data-s3-1 with it",
		},
		"two claims are deleted": {reason: "one after the other", street: s.claimDeleted(1).claimDeleted(2), kind: layout.Renew, pod: "s3-2", place: moves},
		"no volume yet":          {reason: "it is being made", street: s.pending(1).replica(1, func(r *layout.Resident) { r.Volume = layout.Volume{} })},
	})
}

func TestAReplicaWhoseVolumeFollows(t *testing.T) {
	s := network(3)
	zonal := s.replica(1, func(r *layout.Resident) { r.Volume.Anywhere, r.Volume.Homes = false, []string{"node-1", "node-8"} })
	checkAll(t, map[string]turnCase{
		"all is well": {reason: "the quiet case", street: s},
		"the label is removed": {
			reason: "F6: restarted elsewhere, with proof", street: s.outOfTier("node-1"), kind: layout.ReplaceProof, pod: "s3-1", place: layout.ReasonRelocating,
			told: "s3-1 moves from node-1 and takes its volume along, because node-1 does not carry the label",
		},
		"a minute after the move before": {
			reason: "nothing is made anew, so there is nothing to wait for but the proof", street: s.outOfTier("node-1").movedAgo(time.Minute),
			kind: layout.ReplaceProof, pod: "s3-1", place: layout.ReasonRelocating,
		},
		"no free node": {reason: "it goes on", street: s.outOfTier("node-1", "node-8", "node-9"), place: layout.ReasonPlacementBlocked, told: "Ways out"},
		"the node is lost": {
			reason: "Kubernetes starts it elsewhere by itself", street: s.deleted("node-1").down(1),
		},
		"the node is not ready": {
			reason: "Kubernetes waits for a person's word", street: s.notReady("node-1").down(1), place: layout.ReasonReplicaPinned,
			told: "s3-1 hangs on node-1, which is not ready",
		},
		"drained": {reason: "the scheduler has a node for it", street: s.closed("node-1", "is cordoned").pending(1)},
		"a volume of a zone": {
			reason: "another node of its zone is in the tier", street: street{zonal.Scene}.outOfTier("node-1"), kind: layout.ReplaceProof, pod: "s3-1", place: layout.ReasonRelocating,
		},
		"a volume of a zone without a tier": {
			reason: "tied is what no node of the tier can use", street: street{zonal.Scene}.outOfTier("node-1", "node-8"), kind: layout.Renew, pod: "s3-1",
			place: layout.ReasonRelocating, told: "gets a new volume on node-9",
		},
		"a damaged database": {reason: "the volume is no better elsewhere", street: s.damaged(2), kind: layout.Renew, pod: "s3-2", living: true, place: layout.ReasonRelocating},
	})
}

func TestASingleReplica(t *testing.T) {
	tied, follows := tiedStreet(1), network(1)
	const pinned = layout.ReasonReplicaPinned
	checkAll(t, map[string]turnCase{
		"all is well": {reason: "the quiet case", street: tied},
		"the label is removed": {
			reason: "F7: it never moves off a tied volume", street: tied.outOfTier("node-0").outdated(), kind: layout.Hold, place: pinned,
			told: "s3-0 stays where it is, although node-0 does not carry the label role/s3: its volume is the only copy of the data and cannot be used elsewhere. Give the label role/s3 to node-0.",
		},
		"pending on a node that left the tier": {reason: "F7", street: tied.outOfTier("node-0").pending(0), place: pinned, told: "is whole: give the label to that node"},
		"the node is deleted":                  {reason: "F7: the data is on its disk", street: tied.deleted("node-0").pending(0), place: pinned, told: "The only copy of the data is on the disk of that node: bring it back under its name."},
		"the node is not ready":                {reason: "F7", street: tied.notReady("node-0").down(0), place: pinned, told: "Bring it back: there is no other copy."},
		"drained":                              {reason: "F7", street: tied.closed("node-0", "is cordoned").pending(0), place: pinned, told: "is cordoned. Let it take Pods again."},
		"a damaged database":                   {reason: "nothing is deleted", street: tied.damaged(0), place: pinned, told: "Restore its volume from a backup"},
		"the claim is deleted":                 {reason: "nothing here ends the Pod", street: tied.claimDeleted(0).outdated(), kind: layout.Hold, place: pinned, told: "Set the reclaim policy of its volume to Retain"},
		"a changed template":                   {reason: "its node takes it back", street: tied.outdated(), kind: layout.Replace, pod: "s3-0"},
		"a changed template, a cordoned node":  {reason: "it would be gone until a person comes", street: tied.closed("node-0", "is cordoned").outdated(), kind: layout.Hold, told: "would not take them back"},
		"the volume follows":                   {reason: "the interruption is that of a restart", street: follows.outOfTier("node-0"), kind: layout.Replace, pod: "s3-0", place: layout.ReasonRelocating, told: "takes its volume along"},
		"it would follow and finds no node":    {reason: "it goes on", street: follows.outOfTier("node-0", "node-8", "node-9").outdated(), kind: layout.Hold, place: pinned},
	})
}
