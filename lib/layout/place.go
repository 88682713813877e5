package layout

import (
	"slices"
	"time"
)

// Place is a Kubernetes node as far as a replica could live on it.
type Place struct {
	Name   string
	InTier bool // carries the label of the tier that the plan chose
	Ready  bool
	// Closed is why no Pod of the plane would be put there, such as "is cordoned"; empty when one would.
	Closed string
}

// takes tells whether a new Pod of the plane could start there.
func (p Place) takes() bool { return p.InTier && p.Ready && p.Closed == "" }

// Volume is a replica's claim and the volume behind it.
type Volume struct {
	Claim string
	// Bound tells that there is a volume. Without one there is nothing to lose and nothing that ties the replica.
	Bound bool
	// Leaving tells that the claim is being deleted: the volume goes as soon as no Pod uses it.
	Leaving bool
	// Anywhere tells that any node can use the volume. Otherwise Homes can, those of them that exist.
	Anywhere bool
	Homes    []string
	// Missing names nodes that could use it and do not exist, for telling.
	Missing []string
	// Whole tells that its content is the one that was there when all replicas were last proven to hold everything: it
	// was not replaced or emptied since.
	Whole bool
	// Damage is Garage's own word that it cannot read its database; empty when it does not say so.
	Damage string
}

// Resident is a replica as far as its place goes.
type Resident struct {
	Replica

	Node   string // that the Pod is bound to, empty while it has none
	Up     bool   // its Garage is connected
	Volume Volume
}

// Scene is all that decides whose turn it is to be restarted or moved.
type Scene struct {
	Now time.Time
	// Moved is when the newest volume of the plane was made, and Pause the least time until the next one may be.
	Moved     time.Time
	Pause     time.Duration
	Label     string // of the tier's nodes
	WaysOut   string // of too few nodes
	Residents []Resident
	Places    []Place
}

// standing is how a replica stands to its place.
type standing int

const (
	atHome  standing = iota // it runs where it belongs, or will by itself
	leaving                 // it runs on a node that is not of the tier
	waits                   // it does not run, and the node that its volume is tied to takes no Pod now
	hangs                   // its Pod is bound to a node that is not ready, and its volume could be used elsewhere
	outside                 // it does not run, and its volume is tied to nodes that are not of the tier
	lost                    // it does not run, and no node exists that could use its volume
	damaged                 // its Garage cannot read its database
	doomed                  // its claim is being deleted
)

func (s Scene) standing(r Resident) standing {
	v := r.Volume
	switch {
	case v.Leaving:
		return doomed
	case !v.Bound:
		return atHome
	case r.Up:
		if node, known := s.place(r.Node); known && node.InTier {
			return atHome
		}
		return leaving
	case v.Damage != "":
		return damaged
	}
	return s.absent(r)
}

// absent is how a replica that does not run stands to its place.
func (s Scene) absent(r Resident) standing {
	homes := s.homes(r.Volume)
	switch {
	case len(homes) == 0:
		return lost
	case r.Volume.Anywhere || s.follows(r.Volume):
		return s.expected(r)
	case slices.ContainsFunc(homes, func(p Place) bool { return p.Ready }):
		return outside
	default:
		return waits
	}
}

// expected is how a replica that does not run, and could in the tier, stands to its place.
func (s Scene) expected(r Resident) standing {
	node, known := s.place(r.Node)
	tied := s.tied(r.Volume)
	switch {
	case known && !node.Ready && tied:
		return waits
	case known && !node.Ready:
		return hangs
	case r.Node == "" && tied && !slices.ContainsFunc(s.homes(r.Volume), Place.takes):
		return waits
	default:
		return atHome
	}
}

// tied tells whether at most one node that exists can use the volume.
func (s Scene) tied(v Volume) bool { return v.Bound && !v.Anywhere && len(s.homes(v)) <= 1 }

// follows tells whether the volume could be used on a node of the tier, so that nothing has to be made anew.
func (s Scene) follows(v Volume) bool {
	return slices.ContainsFunc(s.homes(v), func(p Place) bool { return p.InTier })
}

// homes are the nodes that exist and can use the volume.
func (s Scene) homes(v Volume) []Place {
	return slices.DeleteFunc(slices.Clone(s.Places), func(p Place) bool {
		return !v.Anywhere && !slices.Contains(v.Homes, p.Name)
	})
}

func (s Scene) place(name string) (Place, bool) {
	i := slices.IndexFunc(s.Places, func(p Place) bool { return p.Name == name })
	if i < 0 {
		return Place{}, false
	}
	return s.Places[i], true
}

// free are the names of the nodes where the replica could start with a new volume: nodes of the tier that take a Pod and
// are nobody else's.
func (s Scene) free(r Resident) []string {
	var found []string
	for _, p := range s.Places {
		if p.takes() && !s.taken(p.Name, r.Pod) {
			found = append(found, p.Name)
		}
	}
	slices.Sort(found)
	return found
}

// taken tells whether another replica runs there or will come back there, since its volume is tied to it.
func (s Scene) taken(node, pod string) bool {
	return slices.ContainsFunc(s.Residents, func(o Resident) bool {
		if o.Pod == pod {
			return false
		}
		homes := s.homes(o.Volume)
		return o.Node == node || o.Volume.Bound && s.tied(o.Volume) && len(homes) == 1 && homes[0].Name == node
	})
}

// returns tells whether the replica would find a place with the volume that it has, were it restarted.
func (s Scene) returns(r Resident) bool {
	if !r.Volume.Bound {
		return true // a volume that is not made yet goes where the Pod goes
	}
	return slices.ContainsFunc(s.homes(r.Volume), func(p Place) bool { return p.takes() && !s.taken(p.Name, r.Pod) })
}
