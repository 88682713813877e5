package layout

import (
	"slices"
	"time"
)

// Notice is what the condition PlacementReady has to say of a replica; no Reason when there is nothing to say.
type Notice struct {
	Pod     string
	Reason  string
	Message string // one sentence
}

// Reasons of a notice, in the words of the condition PlacementReady.
const (
	ReasonRelocating       = "Relocating"
	ReasonReplicaPinned    = "ReplicaPinned"
	ReasonPlacementBlocked = "PlacementBlocked"
)

// Next decides whose turn it is: the one place from which replicas are restarted or moved. Places come first, since a
// replica that is restarted where its node does not take it back is lost for as long:
//
//	a claim is being deleted     its replica first: whatever ends the Pod ends the volume
//	a replica cannot come back   its volume is lost, damaged or outside of the tier: a new one, with proof of the others
//	a replica runs outside       it moves, with proof of all: the volume follows, or a new one is made
//	otherwise                    Roll, which leaves alone what would not come back
//
// A move waits while another replica is away, and while the newest volume is younger than the pause. Whatever does not
// move is told: that of a single replica never does.
func Next(s Scene) Turn {
	var told Notice
	for _, r := range s.candidates() {
		turn := s.consider(r)
		if turn.Kind != Rest {
			return turn
		}
		if told.Reason == "" {
			told = turn.Place
		}
	}
	turn := Roll(s.rollable())
	turn.Place = told
	return turn
}

// candidates are the replicas that are not where they belong, in the order in which they get their turn.
func (s Scene) candidates() []Resident {
	order := []standing{doomed, damaged, lost, outside, waits, hangs, leaving}
	var found []Resident
	for _, want := range order {
		for i := len(s.Residents) - 1; i >= 0; i-- {
			if s.standing(s.Residents[i]) == want {
				found = append(found, s.Residents[i])
			}
		}
	}
	return found
}

// consider is the turn of a replica that is not where it belongs; Rest with a notice when it cannot move now.
func (s Scene) consider(r Resident) Turn {
	is := s.standing(r)
	switch {
	case is == waits || is == hangs:
		return Turn{Place: s.pinned(r, is)}
	case len(s.Residents) == 1:
		return s.alone(r, is)
	case is == doomed && !r.Exists:
		return Turn{Kind: Hold, Place: s.going(r)}
	}
	if obstacle := s.obstacle(r, is); obstacle.Reason != "" {
		// What would end the volume of a claim that is being deleted must not happen in passing.
		return Turn{Kind: holdIf(is == doomed), Message: messageIf(is == doomed, obstacle.Message), Place: obstacle}
	}
	turn := Turn{Kind: ReplaceProof, Pod: r.Pod, Place: s.moving(r, is)}
	if s.renewed(r, is) {
		turn.Kind = Renew
	}
	turn.Living = !r.Up
	return turn
}

// alone: there is no other copy. With a volume that follows it is only restarted; with any other it stays, whatever
// happens to its node.
func (s Scene) alone(r Resident, is standing) Turn {
	if is == leaving && s.follows(r.Volume) && s.returns(r) {
		return Turn{Kind: Replace, Pod: r.Pod, Place: s.moving(r, is)}
	}
	// A Pod that runs would not come back, or take its volume with it.
	stays := r.Node != "" && is != damaged || is == doomed
	notice := s.pinned(r, is)
	return Turn{Kind: holdIf(stays), Message: messageIf(stays, notice.Message), Place: notice}
}

func holdIf(hold bool) TurnKind {
	if hold {
		return Hold
	}
	return Rest
}

func messageIf(tell bool, message string) string {
	if tell {
		return message
	}
	return ""
}

// obstacle is what keeps a replica from being moved now.
func (s Scene) obstacle(r Resident, is standing) Notice {
	others := slices.DeleteFunc(slices.Clone(s.Residents), func(o Resident) bool { return o.Pod == r.Pod })
	if i := slices.IndexFunc(others, func(o Resident) bool { return !o.Up }); i >= 0 {
		return s.waitsFor(r, is, others[i])
	}
	renewed := s.renewed(r, is)
	if renewed && len(s.free(r)) == 0 || !renewed && !s.returns(r) {
		return s.blocked(r, is)
	}
	if i := slices.IndexFunc(others, func(o Resident) bool { return !o.Volume.Whole }); i >= 0 && !r.Up {
		return s.unproven(r, is, others[i])
	}
	if renewed && s.Now.Sub(s.Moved) < s.Pause {
		return s.paused(r, is)
	}
	return Notice{}
}

// renewed tells whether the replica gets a new volume when it moves.
func (s Scene) renewed(r Resident, is standing) bool { return is != leaving || !s.follows(r.Volume) }

// PauseOf is the least time between two moves of tied volumes: ten times the rpc_timeout_msec in force, with
// production's 60 s the ten minutes of SPEC F6. Garage copies blocks after twice that time.
func PauseOf(rpcTimeout time.Duration) time.Duration {
	const times = 10
	return times * rpcTimeout
}

// rollable is the replicas for Roll.
func (s Scene) rollable() []Replica {
	replicas := make([]Replica, 0, len(s.Residents))
	for _, r := range s.Residents {
		if r.Node != "" && !s.returns(r) {
			r.Rooted = true
		}
		replicas = append(replicas, r.Replica)
	}
	return replicas
}
