package layout

import (
	"fmt"
	"slices"
	"strings"
)

// Replica is a Pod of a plane as far as restarting it goes.
type Replica struct {
	Pod    string
	Exists bool // there is a Pod that is not on its way out
	Ready  bool
	// Outdated tells that the Pod was made from another template than the present one.
	Outdated bool
	// Trouble is why a Pod that is not ready is not, in Kubernetes' words; empty when unknown.
	Trouble string
	// Rooted tells that the Pod, were it restarted, would find no node that takes it with its volume.
	Rooted bool
}

// TurnKind is the kind of a Turn.
type TurnKind int

// The kinds.
const (
	Rest         TurnKind = iota // all replicas run the present template
	Hold                         // nothing is restarted now
	Replace                      // restart Pod: it serves nothing, so nothing is lost by it
	ReplaceProof                 // restart Pod once the gate is open
	Renew                        // once the gate is open, delete Pod and its claim: it comes back with an empty volume
)

// Turn is whose turn it is to be restarted.
type Turn struct {
	Kind    TurnKind
	Pod     string
	Message string // one sentence; empty at rest
	// Living tells that the gate is the one of the other replicas: Pod's cannot be asked.
	Living bool
	// Place is what is to be told of where replicas are.
	Place Notice
}

// Roll decides which replica is restarted next so that all run the present template. The ladder:
//
//	all run it                            Rest
//	all others would not come back        Hold: their nodes would not take them now
//	an outdated one is not ready          Replace it: a template that did not start is left this way
//	one that runs it is not ready         Hold: the roll stops at the first replica that does not come back
//	the only replica                      Replace it: there is no other copy to wait for
//	otherwise                             ReplaceProof the outdated one of the highest ordinal
func Roll(replicas []Replica) Turn {
	outdated := filter(replicas, func(r Replica) bool { return r.Outdated && r.Exists })
	if len(outdated) == 0 {
		return Turn{}
	}
	progress := fmt.Sprintf("%d of %d replicas wait for a restart with the present template", len(outdated), len(replicas))
	outdated = filter(outdated, func(r Replica) bool { return !r.Rooted })
	if len(outdated) == 0 {
		return Turn{Kind: Hold, Message: progress + ": their nodes would not take them back now."}
	}
	if useless := filter(outdated, func(r Replica) bool { return !r.Ready }); len(useless) > 0 {
		pod := useless[0].Pod
		return Turn{Kind: Replace, Pod: pod, Message: fmt.Sprintf("%s; %s, which is not ready, is restarted.", progress, pod)}
	}
	if waiting := filter(replicas, func(r Replica) bool { return !r.Ready || !r.Exists }); len(waiting) > 0 {
		return Turn{Kind: Hold, Message: fmt.Sprintf("%s, until these are ready: %s.", progress, absent(waiting))}
	}
	next := outdated[len(outdated)-1]
	if len(replicas) == 1 {
		return Turn{Kind: Replace, Pod: next.Pod, Message: next.Pod + " is restarted with the present template."}
	}
	return Turn{Kind: ReplaceProof, Pod: next.Pod, Message: progress}
}

func filter(replicas []Replica, keep func(Replica) bool) []Replica {
	return slices.DeleteFunc(slices.Clone(replicas), func(r Replica) bool { return !keep(r) })
}

func absent(waiting []Replica) string {
	told := make([]string, 0, len(waiting))
	for _, r := range waiting {
		switch {
		case !r.Exists:
			told = append(told, r.Pod+" (has no Pod)")
		case r.Trouble == "":
			told = append(told, r.Pod)
		default:
			told = append(told, fmt.Sprintf("%s (%s)", r.Pod, r.Trouble))
		}
	}
	slices.Sort(told)
	return strings.Join(told, ", ")
}
