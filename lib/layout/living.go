package layout

import "fmt"

// Living. With three copies and a write quorum of two, two replicas hold everything without the third once they are
// equal, provided that neither was emptied since all three were last proven to hold everything (Volume.Whole):
//
//   - what was acknowledged before that proof lay on all three, and lies on both still;
//   - what was acknowledged after it lay on two of three, so that at least one of the two has it. Metadata are synced to
//     the disk before they are acknowledged. A block that a power cut took is missing where the metadata name it: there
//     it counts as lacked, and the gate stays closed;
//   - the two compare all tables with each other: Garage takes a comparison for done when at most one of three nodes
//     failed to answer, and the third is seen by neither, so that it is the one that failed;
//   - then both look for blocks that they lack and copy them from each other.
//
// After that both have all of it, and the volume of the third one is not needed. If one of the two was emptied in
// between, the third one may hold the only copy of what it had acknowledged together with that one: no proof is possible.
//
// Deletions do not count: Garage keeps trying to ask the third node about each block that is to be deleted, and fails.

// unfitLiving tells why there is nothing to prove of the living nodes right now.
func unfitLiving(e Evidence) string {
	if len(e.Accounts) == 0 {
		return "no node is known"
	}
	for _, a := range e.Accounts {
		switch {
		case a.Silence != "":
			return fmt.Sprintf("%s does not tell how far it is: %s", a.Name, a.Silence)
		case a.Sees[e.Absent]:
			return a.Name + " is connected to " + e.Absent + " after all"
		case !a.Quorate:
			return a.Name + " has no quorum"
		case a.Draining:
			return a.Name + " has not taken over the present layout"
		}
		for _, other := range e.Accounts {
			if !a.Sees[other.Name] {
				return a.Name + " is not connected to " + other.Name
			}
		}
	}
	return ""
}

// failed is how many failed blocks of a node keep the gate closed.
func (e Evidence) failed(a Account) int {
	if e.Absent != "" {
		return a.LackedBlocks
	}
	return a.FailedBlocks
}

func (e Evidence) proven() string {
	if e.Absent != "" {
		return "the other replicas hold everything without " + e.Absent
	}
	return "every replica holds all copies"
}
