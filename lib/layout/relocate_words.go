package layout

import (
	"fmt"
	"slices"
	"strings"
)

// moving is a move that is going on; the message ends without a full stop, for what it waits for to follow.
func (s Scene) moving(r Resident, is standing) Notice {
	how := "gets a new volume on " + oneOf(s.free(r)) + " and is filled from the other replicas"
	if !s.renewed(r, is) {
		how = "moves from " + r.Node + " and takes its volume along"
	}
	return Notice{Pod: r.Pod, Reason: ReasonRelocating, Message: fmt.Sprintf("%s %s, because %s", r.Pod, how, s.cause(r, is))}
}

// cause is why a replica is not where it belongs, one clause.
func (s Scene) cause(r Resident, is standing) string {
	switch is {
	case doomed:
		return "its claim " + r.Volume.Claim + " is being deleted"
	case damaged:
		return "its Garage cannot read its database (" + r.Volume.Damage + ")"
	case lost:
		if len(r.Volume.Missing) == 0 {
			return "no node exists that could use its volume"
		}
		return "its volume was tied to " + strings.Join(r.Volume.Missing, ", ") + ", which does not exist any more"
	case leaving:
		if _, known := s.place(r.Node); !known {
			return "the node " + r.Node + " does not exist any more"
		}
		return r.Node + " does not carry the label " + s.Label
	case atHome, waits, hangs, outside:
	}
	return "its volume is tied to " + s.home(r) + ", which does not carry the label " + s.Label
}

// home names the nodes that exist and can use a tied volume.
func (s Scene) home(r Resident) string {
	var found []string
	for _, p := range s.homes(r.Volume) {
		found = append(found, p.Name)
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

// going is a replica whose Pod ends, and with it its volume.
func (s Scene) going(r Resident) Notice {
	return Notice{Pod: r.Pod, Reason: ReasonRelocating, Message: r.Pod + " gets a new volume: its Pod ends, and its claim " +
		r.Volume.Claim + " with it."}
}

func (s Scene) waitsFor(r Resident, is standing, other Resident) Notice {
	return Notice{Pod: r.Pod, Reason: ReasonRelocating, Message: fmt.Sprintf(
		"%s is to move, because %s, and waits until %s is up: two replicas are never away at once.", r.Pod, s.cause(r, is), other.Pod)}
}

func (s Scene) paused(r Resident, is standing) Notice {
	return Notice{Pod: r.Pod, Reason: ReasonRelocating, Message: fmt.Sprintf(
		"%s is to move, because %s, and waits until the newest volume of the store is %s old.", r.Pod, s.cause(r, is), s.Pause)}
}

func (s Scene) blocked(r Resident, is standing) Notice {
	return Notice{Pod: r.Pod, Reason: ReasonPlacementBlocked, Message: fmt.Sprintf(
		"%s is to move, because %s, and no node with the label %s is free for it. Ways out: %s.", r.Pod, s.cause(r, is), s.Label, s.WaysOut)}
}

// unproven: nobody can say whether what only the absent replica and the other one's former volume held is lost.
func (s Scene) unproven(r Resident, is standing, other Resident) Notice {
	return Notice{Pod: r.Pod, Reason: ReasonReplicaPinned, Message: fmt.Sprintf(
		"%s is not made anew, although %s: %s got an empty volume after all replicas were last proven to hold everything, "+
			"so that the volume of %s may be the only one with some objects. Bring it back; if that is impossible, delete its "+
			"PersistentVolumeClaim %s and its Pod, and whatever only it held is lost.",
		r.Pod, s.cause(r, is), other.Pod, r.Pod, r.Volume.Claim)}
}

// pinned is a replica that stays with its volume.
func (s Scene) pinned(r Resident, is standing) Notice {
	var message string
	switch is {
	case waits:
		message = s.waiting(r)
	case hangs:
		message = fmt.Sprintf("%s hangs on %s, which is not ready: Kubernetes lets go of its volume only when the node is known to be off. "+
			"Bring the node back, or delete it (kubectl delete node %s) once it is off for sure.", r.Pod, r.Node, r.Node)
	case leaving:
		message = fmt.Sprintf("%s stays where it is, although %s: its volume is the only copy of the data and cannot be used elsewhere. "+
			"Give the label %s to %s.", r.Pod, s.cause(r, is), s.Label, r.Node)
	case outside:
		message = fmt.Sprintf("%s cannot run, because %s. Its volume, the only copy of the data, is whole: give the label to that node.", r.Pod, s.cause(r, is))
	case lost:
		message = fmt.Sprintf("%s cannot run, because %s. The only copy of the data is on the disk of that node: bring it back under its name.", r.Pod, s.cause(r, is))
	case damaged:
		message = fmt.Sprintf("%s does not start, because %s, and there is no other copy. "+
			"Restore its volume from a backup; should there be none, delete its PersistentVolumeClaim %s and its Pod to begin with an empty store.",
			r.Pod, s.cause(r, is), r.Volume.Claim)
	case doomed:
		message = fmt.Sprintf("The claim %s is being deleted, and with it the only copy of the data as soon as %s ends, which nothing here does. "+
			"Set the reclaim policy of its volume to Retain before anything ends the Pod.", r.Volume.Claim, r.Pod)
	case atHome:
	}
	return Notice{Pod: r.Pod, Reason: ReasonReplicaPinned, Message: message}
}

// waiting is a replica whose volume is tied to a node that exists and takes no Pod now.
func (s Scene) waiting(r Resident) string {
	home := s.home(r)
	why, out := "is not ready", fmt.Sprintf("Bring it back; if it is lost for good, delete it (kubectl delete node %s), and the replica is made anew on another node.", home)
	if len(s.Residents) == 1 {
		out = "Bring it back: there is no other copy."
	}
	for _, p := range s.homes(r.Volume) {
		if p.Ready && p.Closed != "" {
			why, out = p.Closed, "Let it take Pods again."
			if len(s.Residents) > 1 {
				out = "Let it take Pods again, or take the label " + s.Label + " off it, and the replica is made anew on another node."
			}
		}
	}
	return fmt.Sprintf("%s waits for %s, to which its volume is tied and which %s. %s", r.Pod, home, why, out)
}

const shown = 3 // names in a list

// oneOf is a choice of nodes; a long one is not spelt out.
func oneOf(names []string) string {
	if len(names) > shown {
		return "another node of the tier"
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
