package plan

import (
	"fmt"
	"slices"
	"strings"
)

// The store moves to another StorageClass by a second plane, the target, which is filled beside the store, the source,
// and takes its place:
//
//	active a ──another class is wanted──► active a, target b ──switched──► retiring a, active b ──gone──► active b
//	active a ◄──gone── active a, retiring b ◄──called back, before the fence──┘
//
// The planner makes the target and lets a plane go. What happens in between is the controller's, whose word on it is the
// phase. While there are two planes no number of copies changes.

// move of a store with one plane to the class that is wanted.
type move struct {
	store ObservedPlane
	want  classChoice
	mode  modeChoice
}

func newMove(c Cluster, o ObservedPlane, s Settings) move {
	m := move{store: o, want: wantedClass(c, s), mode: wantedMode(s)}
	if o.ReplicationFactor != single && m.mode.replicas == single && m.mode.setting == "" {
		// A cluster that lost a master must not lose copies of its data on top (C5).
		m.mode = modeChoice{replicas: o.ReplicationFactor, why: "Three replicas, as the store has had: it shrinks only when highAvailability: false is written down."}
	}
	return m
}

// wanted tells whether the store should be elsewhere, on a class that can be had.
func (m move) wanted() bool {
	return m.want.problem == "" && m.want.name != "" && m.want.name != m.store.StorageClass
}

// asks begins a sentence about the move.
func (m move) asks() string { return capital(m.want.asks) + " asks for StorageClass " + m.want.name }

// follow says what becomes of the wish beside the next step of the replicas, and whether the move begins now.
func (m move) follow(c Cluster, step turn) (turn, bool) {
	place := placement(c, m.mode.replicas, m.want.name)
	class, _ := c.class(m.want.name)
	switch {
	case class.Immediate:
		step.verdict = withProblem(step.verdict, fmt.Sprintf(
			"%s, which has volumeBindingMode Immediate: its volumes would tie the new replicas to wherever they land. The store stays on %s. Name a class with WaitForFirstConsumer, or %s again.",
			m.asks(), m.store.StorageClass, m.store.StorageClass))
		return step, false
	case m.store.changing():
		step.verdict = m.after(step.verdict)
		return step, false
	case !place.verdict.OK:
		step.verdict = m.unplaced(step.verdict, place)
		return step, false
	case !m.store.Progress.Serving || m.store.Progress.Epoch != m.store.Epoch:
		return stay(m.store, step.why, accept(ReasonPreparing, m.asks()+"; the move begins as soon as the store serves requests.")), false
	}
	return stay(m.store, replicas(m.store.Replicas)+", as created, while the store moves.", accept(ReasonPreparing, fmt.Sprintf(
		"%s: a second plane with %s is made ready beside the store, which serves. %s",
		m.asks(), lowerFirst(replicas(m.mode.replicas)), callBack(m.store)))), true
}

// changing tells whether a change of the number of copies has begun.
func (o ObservedPlane) changing() bool {
	if o.ReplicationFactor != single {
		return !o.whole()
	}
	return o.Replicas != single || len(o.others()) > 0
}

// after is what is told of a change of copies that goes first.
func (m move) after(v Verdict) Verdict {
	if v.Reason == ReasonNotNeeded {
		return accept(ReasonPreparing, fmt.Sprintf("%s; before, volumes of replicas that were given up are deleted: %s.", m.asks(), claimNames(m.store.others())))
	}
	v.Message += fmt.Sprintf(" %s; the move begins when that is finished.", m.asks())
	return v
}

// unplaced says that the target has too few nodes. What is told of the replicas may have said so already.
func (m move) unplaced(v Verdict, place placeChoice) Verdict {
	if v.Reason == ReasonBlocked {
		return withProblem(v, m.asks()+"; the move waits for the same nodes.")
	}
	return withProblem(v, fmt.Sprintf("%s; the store stays on %s, because %s", m.asks(), m.store.StorageClass, lowerFirst(place.verdict.Message)))
}

// target is the plane that the store moves to.
func (m move) target(c Cluster) told {
	return printed(c, ObservedPlane{ID: following(m.store.ID), Facts: Facts{
		Role: RoleTarget, StorageClass: m.want.name, Replicas: m.mode.replicas, ReplicationFactor: m.mode.replicas, Epoch: 1,
	}}, wantedVolume(c, m.store).bytes, Reasons{Replicas: m.mode.why, StorageClass: m.want.why})
}

// following is the id of the plane after the plane.
func following(id string) string {
	const letters = 'z' - 'a' + 1
	return string('a' + (rune(id[0])-'a'+1)%letters)
}

// leftOver tells whether the controller still speaks of a move that is none of the store's any more. Its next one waits
// until that is put away: the word on one move must not be taken for a word on another.
func (m *MigrationState) leftOver(store string) bool {
	return m != nil && (m.Phase != PhasePreparing || m.Source != store || m.Target != following(store))
}

// together is the plan of a store with more than one plane: one is active, the others are its target or go.
func together(c Cluster, s Settings) Plan {
	active := of(c.Planes, RoleActive)[0]
	least := wantedVolume(c, active).bytes
	p := quiet(ready()).with(stays(c, active, s, 0))
	for _, o := range c.Planes {
		if o.ID == active.ID {
			continue
		}
		if o.Role == RoleTarget && abandoned(c, o, s) {
			o.Role = RoleRetiring
		}
		p = p.with(stays(c, o, s, least))
		p.Migration = louder(p.Migration, halfway(c, active, o))
	}
	p.Migration = wishes(c, s, p)
	return p
}

// stays is a plane of which nothing changes but its size and its place.
func stays(c Cluster, o ObservedPlane, s Settings, least int64) told {
	return printed(c, o, least, Reasons{Replicas: replicas(o.Replicas) + ", as created, while the store moves.", StorageClass: keptClass(c, o, s).why})
}

// abandoned tells whether the target is not what is wanted any more, and the controller's word is that the source is
// still the store.
func abandoned(c Cluster, target ObservedPlane, s Settings) bool {
	m := c.Migration
	if m == nil || m.Target != target.ID || indexOf(of(c.Planes, RoleActive), m.Source) < 0 || !m.Phase.revocable() {
		return false
	}
	want := wantedClass(c, s)
	return want.problem == "" && want.name != target.StorageClass
}

// halfway says how far the store is with two planes.
func halfway(c Cluster, active, other ObservedPlane) Verdict {
	m := c.Migration
	known := m != nil && other.ID == m.Target && active.ID == m.Source
	if other.Role == RoleRetiring {
		return ending(active, other, known)
	}
	moves := fmt.Sprintf("The store moves from StorageClass %s to %s, from plane %s to plane %s", active.StorageClass, other.StorageClass, active.ID, other.ID)
	switch {
	case !known || m.Phase == PhasePreparing:
		return accept(ReasonPreparing, fmt.Sprintf("%s: the new plane is made ready beside the store, which serves. %s", moves, callBack(active)))
	case m.Phase == PhaseCopying:
		return accept(ReasonCopying, fmt.Sprintf("%s: objects are copied, and clients notice nothing. %s", moves, callBack(active)))
	case m.Phase == PhaseVerifying:
		return accept(ReasonVerifying, fmt.Sprintf("%s: every copy is read back and compared, and clients notice nothing. %s", moves, callBack(active)))
	default:
		return accept(ReasonSwitching, moves+": writes wait for some seconds, then the new plane is the store. From the fence on it is finished before it can be changed again.")
	}
}

// ending says which of the two planes goes, and why.
func ending(active, retiring ObservedPlane, calledBack bool) Verdict {
	if calledBack {
		return accept(ReasonAborting, fmt.Sprintf("The move to StorageClass %s was called back: plane %s and its volumes are deleted. The store stays as it is.", retiring.StorageClass, retiring.ID))
	}
	return accept(ReasonFinished, fmt.Sprintf("The store is on StorageClass %s; plane %s on %s and its volumes are deleted.", active.StorageClass, retiring.ID, retiring.StorageClass))
}

// callBack is the way back before the fence.
func callBack(store ObservedPlane) string {
	return fmt.Sprintf("Until the switch it can be called back: ask for StorageClass %s again.", store.StorageClass)
}

// wishes adds to what is told of a move what is wanted besides, and has its turn after it.
func wishes(c Cluster, s Settings, p Plan) Verdict {
	future := p.Planes[slices.IndexFunc(p.Planes, func(plane Plane) bool { return plane.Role == RoleActive })]
	if i := slices.IndexFunc(p.Planes, func(plane Plane) bool { return plane.Role == RoleTarget }); i >= 0 {
		future = p.Planes[i]
	}
	class, mode := wantedClass(c, s), wantedMode(s)
	another := class.name != "" && class.name != future.StorageClass
	var later []string
	if another && class.problem == "" {
		later = append(later, class.asks+" asks for StorageClass "+class.name)
	}
	if mode.replicas != future.Replicas && (mode.replicas != single || mode.setting != "") {
		later = append(later, lowerFirst(mode.subject())+" asks for "+lowerFirst(replicas(mode.replicas)))
	}
	v := p.Migration
	if len(later) > 0 {
		v.Message += " " + capital(strings.Join(later, ", and ")) + ": that begins when this is finished."
	}
	if another {
		v = withProblem(v, class.problem)
	}
	return v
}
