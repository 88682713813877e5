package plan

import "fmt"

// FirstPlane is the id of the plane made for the first SystemBucket.
const FirstPlane = "a"

// Decide returns the plan for the observed cluster. It has no side effects: equal input gives an equal Plan, whatever
// the order of its parts.
func Decide(c Cluster, s Settings) Plan {
	c = c.sorted()

	// 1. What was decided once and cannot be read back is never guessed: the store stays as it is.
	if why := unreadable(c.Planes); why != "" {
		return frozen(c, s, why)
	}
	// 2. A store that exists goes on, with or without buckets.
	if len(c.Planes) > 0 {
		return existing(c, s, evolve)
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
	facts := Facts{StorageClass: class.name, Replicas: mode.replicas, ReplicationFactor: mode.replicas, Epoch: 1}
	return quiet(ready()).with(printed(c, ObservedPlane{ID: FirstPlane, Facts: facts}, Reasons{Replicas: mode.why, StorageClass: class.why}))
}

// existing is the plan of a store that is there: what is pinned stays, the replicas change as next says, the rest
// follows the cluster.
func existing(c Cluster, s Settings, next func(Cluster, ObservedPlane, Settings) turn) Plan {
	p := quiet(ready())
	for _, o := range c.Planes {
		mode, class := next(c, o, s), keptClass(c, o, s)
		o.Facts = mode.facts
		added := printed(c, o, Reasons{Replicas: mode.why, StorageClass: class.why})
		added.plane.Survey = mode.survey
		p = p.with(added)
		p.Migration = louder(p.Migration, withProblem(mode.verdict, class.problem))
	}
	return p
}

// told is a plane with what the planner says of it.
type told struct {
	plane     Plane
	placement Verdict
	capacity  Verdict
}

// printed is the plane that is made or kept with the facts: what is not pinned follows the cluster.
func printed(c Cluster, o ObservedPlane, why Reasons) told {
	volume := wantedVolume(c, o)
	place := placement(c, o.Replicas, o.StorageClass)
	why.Tier, why.Volume = place.why, volume.why
	return told{placement: place.verdict, capacity: volume.verdict, plane: Plane{
		ID:                o.ID,
		Role:              RoleActive,
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

// with adds a plane. Of two planes the one that is worse off speaks.
func (p Plan) with(added told) Plan {
	first := len(p.Planes) == 0
	p.Planes = append(p.Planes, added.plane)
	if first {
		p.Placement, p.Capacity = added.placement, added.capacity
		return p
	}
	p.Placement, p.Capacity = worse(p.Placement, added.placement), worse(p.Capacity, added.capacity)
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
	known := Cluster{Nodes: c.Nodes, Classes: c.Classes, Buckets: c.Buckets}
	for _, o := range c.Planes {
		if o.Known {
			known.Planes = append(known.Planes, o)
		}
	}
	p := existing(known, s, asItIs)
	p.Storage = refuse(ReasonStateUnreadable, why)
	for i := range p.Planes {
		p.Planes[i].Frozen = why
	}
	return p
}

// unreadable is the first fact that cannot be read, or empty.
func unreadable(planes []ObservedPlane) string {
	for _, o := range planes {
		if o.Unreadable != "" {
			return o.Unreadable
		}
		if !o.Known {
			return fmt.Sprintf("Of plane %s of the store only parts exist: neither its StatefulSet nor its Secret tells how it was made.", o.ID)
		}
	}
	return ""
}

// asItIs leaves the replicas of a plane alone.
func asItIs(_ Cluster, o ObservedPlane, _ Settings) turn {
	return stay(o, replicas(o.Replicas)+", as created.", noMigration())
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
