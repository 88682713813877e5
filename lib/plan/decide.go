package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// FirstPlane is the id of the plane made for the first SystemBucket.
const FirstPlane = "a"

// Decide returns the plan for the observed cluster. It has no side effects: equal input gives an equal Plan, whatever
// the order of its parts.
func Decide(c Cluster, s Settings) Plan {
	c = c.sorted()
	c.Planes = cast(c)

	// 1. What was decided once and cannot be read back is never guessed: the store stays as it is.
	if why := unreadable(c); why != "" {
		return frozen(c, s, why)
	}
	// 2. A store that exists goes on, with or without buckets.
	if len(c.Planes) > 0 {
		return existing(c, s)
	}
	// 3. No store before there is something to store.
	if len(c.Buckets) == 0 {
		return quiet(refuse(ReasonWaitingForFirstBucket, "The store is created with the first SystemBucket."))
	}
	// 4. The first bucket asks for a store, and a store needs a StorageClass.
	class := wantedClass(c, s)
	if class.problem != "" {
		return quiet(refuse(ReasonNoStorageClass, class.problem))
	}
	return created(c, s, class)
}

// created is the plan of a new store.
func created(c Cluster, s Settings, class classChoice) Plan {
	mode := wantedMode(s)
	facts := Facts{Role: RoleActive, StorageClass: class.name, Replicas: mode.replicas, ReplicationFactor: mode.replicas, Epoch: 1}
	p := quiet(ready())
	if c.Migration != nil {
		p.Active = following(c.Migration.Target) // no word on planes of before is taken for a word on this one
	}
	return p.with(printed(c, ObservedPlane{ID: p.Active, Facts: facts}, 0, Reasons{Replicas: mode.why, StorageClass: class.why}))
}

// existing is the plan of a store that is there: what is pinned stays, the rest follows the cluster.
func existing(c Cluster, s Settings) Plan {
	if len(c.Planes) > 1 {
		p := together(c, s)
		p.Active = leading(c.Planes)
		return p
	}
	return alone(c, s)
}

// alone is the plan of a store with one plane: its replicas change as evolve says, and another class that is wanted
// gets a plane of its own.
func alone(c Cluster, s Settings) Plan {
	o := c.Planes[0]
	step, class, m := evolve(c, o, s), keptClass(c, o, s), newMove(c, o, s)
	begins := false
	switch {
	case c.Migration.leftOver(o.ID):
		step = stay(o, step.why, accept(ReasonFinished, fmt.Sprintf("What is left of the move between planes %s and %s is put away.", c.Migration.Source, c.Migration.Target)))
	case m.wanted():
		step, begins = m.follow(c, step)
	}
	o.Facts = step.facts
	added := printed(c, o, 0, Reasons{Replicas: step.why, StorageClass: class.why})
	added.plane.Survey = step.survey
	p := quiet(ready()).with(added)
	p.Active, p.Migration = o.ID, withProblem(step.verdict, class.problem)
	if begins {
		p = p.with(m.target(c))
	}
	return p
}

// told is a plane with what the planner says of it.
type told struct {
	plane     Plane
	placement Verdict
	capacity  Verdict
}

// printed is the plane that is made or kept with the facts: what is not pinned follows the cluster. Its volumes have at
// least so many bytes.
func printed(c Cluster, o ObservedPlane, least int64, why Reasons) told {
	volume := wantedVolume(c, o)
	if o.Role == RoleTarget && least > volume.bytes {
		volume = volume.asLargeAs(c, o, least)
	}
	place := placement(c, o.Replicas, o.StorageClass)
	why.Tier, why.Volume = place.why, volume.why
	return told{placement: place.verdict, capacity: volume.verdict, plane: Plane{
		ID:                o.ID,
		Role:              o.Role,
		Epoch:             o.Epoch,
		StorageClass:      o.StorageClass,
		Replicas:          o.Replicas,
		ReplicationFactor: o.ReplicationFactor,
		VolumeSize:        quantity(volume.bytes),
		VolumeBytes:       volume.bytes,
		OrdinalsStart:     o.start(),
		Members:           o.Members(),
		Survivor:          o.Survivor,
		Tier:              place.tier,
		NodeLabel:         place.label,
		Tolerations:       place.tolerations,
		Reasons:           why,
	}}
}

// with adds a plane. Of two planes the one that is worse off speaks; one that retires has nothing to say.
func (p Plan) with(added told) Plan {
	first := !slices.ContainsFunc(p.Planes, func(plane Plane) bool { return plane.Role != RoleRetiring })
	p.Planes = append(p.Planes, added.plane)
	slices.SortFunc(p.Planes, func(a, b Plane) int { return cmp.Compare(a.ID, b.ID) })
	switch {
	case added.plane.Role == RoleRetiring:
	case first:
		p.Placement, p.Capacity = added.placement, added.capacity
	default:
		p.Placement, p.Capacity = worse(p.Placement, added.placement), worse(p.Capacity, added.capacity)
	}
	return p
}

// worse is the first of two verdicts that is not well.
func worse(a, b Verdict) Verdict {
	if a.OK && !b.OK {
		return b
	}
	return a
}

// louder is the first of two verdicts that tells of a change.
func louder(a, b Verdict) Verdict {
	if a.Reason == ReasonNotNeeded {
		return b
	}
	return a
}

// frozen is the plan of a store of which a fact cannot be read: its planes are printed as far as they are known, and
// the chart leaves their Pods and secrets alone.
func frozen(c Cluster, s Settings, why string) Plan {
	p := quiet(refuse(ReasonStateUnreadable, why))
	p.Active = leading(c.Planes)
	for _, o := range c.Planes {
		if !o.Known {
			continue
		}
		class := keptClass(c, o, s)
		p = p.with(printed(c, o, 0, Reasons{Replicas: replicas(o.Replicas) + ", as created.", StorageClass: class.why}))
		p.Migration = louder(p.Migration, withProblem(noMigration(), class.problem))
	}
	for i := range p.Planes {
		p.Planes[i].Frozen = why
	}
	return p
}

// unreadable is the first fact that cannot be read or contradicts another one, or empty.
func unreadable(c Cluster) string {
	for _, o := range c.Planes {
		if o.Unreadable != "" {
			return o.Unreadable
		}
		if !o.Known {
			return fmt.Sprintf("Of plane %s of the store only parts exist: neither its StatefulSet nor its Secret tells how it was made.", o.ID)
		}
	}
	return miscast(c)
}

// withProblem adds to what is told of the replicas that the wanted class is not the store's.
func withProblem(v Verdict, problem string) Verdict {
	switch {
	case problem == "":
		return v
	case v.Reason == ReasonNotNeeded:
		return refuse(ReasonBlocked, problem)
	default:
		return refuse(ReasonBlocked, v.Message+" "+problem)
	}
}

// quiet is a plan without planes: nothing to place, to fill or to move.
func quiet(storage Verdict) Plan {
	return Plan{
		Planes:    []Plane{},
		Active:    FirstPlane,
		Storage:   storage,
		Placement: accept(ReasonPlaced, "There is nothing to place."),
		Capacity:  accept(ReasonEnough, "There are no volumes."),
		Migration: noMigration(),
	}
}

func noMigration() Verdict {
	return accept(ReasonNotNeeded, "The store has the replicas and the StorageClass that are wanted.")
}

func ready() Verdict { return accept(ReasonReady, "The store is planned; nothing stands in its way.") }

func accept(reason, message string) Verdict {
	return Verdict{OK: true, Reason: reason, Message: message}
}

func refuse(reason, message string) Verdict { return Verdict{Reason: reason, Message: message} }
