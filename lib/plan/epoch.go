package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The number of copies changes by epochs. A plane has one of three shapes, and goes from one to the next:
//
//	one Pod, one copy ──more Pods──► three Pods, one copy ──epoch + 1──► three Pods, three copies
//	one Pod, one copy ◄─fewer Pods── three Pods, one copy ◄──epoch + 1── three Pods, three copies
//
// In the middle one replica has everything and the other two have no role: on the way up they are made ready there, on
// the way down they keep their volumes until the one that stays has proven that it needs none of them. Whoever changes
// his mind in the middle goes on in the other direction. What was decided lies in the facts, how far it is carried out
// is the controller's word.

// Progress is the controller's word on how far a change of the replicas is.
type Progress struct {
	// Epoch whose layout is in force, 0 while unknown.
	Epoch int
	// Serving tells that reads and writes have their quorum.
	Serving bool
	// Whole is the last epoch in which every replica with a role was proven to hold all copies.
	Whole int
	// Proven tells that the plane may give up two of its three copies; only meant when the plan asks for it.
	Proven bool
	// Spoiled is the epoch in which a replica began before all others had handed over to it.
	Spoiled int
}

// turn is the next shape of a plane, and what is told about it.
type turn struct {
	facts Facts
	// survey asks the controller for the proof without which no copy is given up.
	survey  bool
	why     string
	verdict Verdict
}

// evolve is the next shape of a plane that exists. Volumes grow, and tiers and templates change, at any time beside it:
// they change no copies. Another StorageClass waits.
func evolve(c Cluster, o ObservedPlane, s Settings) turn {
	want := wantedMode(s)
	switch {
	case o.ReplicationFactor != single:
		return fromThree(c, o, want)
	case o.Replicas != single:
		return fromBetween(o, want)
	case want.replicas != single:
		return fromOne(c, o, want)
	default:
		return stay(o, want.why, noMigration())
	}
}

func stay(o ObservedPlane, why string, v Verdict) turn {
	return turn{facts: o.Facts, why: why, verdict: v}
}

// fromOne adds Pods beside the only replica, which does not notice.
func fromOne(c Cluster, o ObservedPlane, want modeChoice) turn {
	asks := want.subject() + " asks for three replicas"
	place := placement(c, want.replicas, o.StorageClass)
	if !place.verdict.OK {
		return stay(o, "One replica, as created.", refuse(ReasonBlocked, fmt.Sprintf(
			"%s; the store stays with one, because %s", asks, lowerFirst(place.verdict.Message))))
	}
	if left := claimNames(o.others()); left != "" {
		return stay(o, "One replica, for now.", accept(ReasonPreparing, fmt.Sprintf(
			"%s; before, volumes of replicas that were given up are deleted: %s.", asks, left)))
	}
	if !o.Progress.Serving || o.Progress.Epoch != o.Epoch {
		return stay(o, "One replica, for now.", accept(ReasonPreparing, asks+", which begins as soon as the store serves requests."))
	}
	next := o.Facts
	next.Replicas = faultTolerant
	return turn{facts: next, why: want.why, verdict: accept(ReasonPreparing, asks+preparing)}
}

const preparing = ": two more are made ready. Until then nothing changes for clients, and it can be called back."

// fromBetween goes on to three copies or back to one Pod, whichever is wanted now.
func fromBetween(o ObservedPlane, want modeChoice) turn {
	if o.Progress.Spoiled == o.Epoch {
		return o.rise(fmt.Sprintf(
			"Three replicas are put together again: a replica was restarted before the others had handed over to %s.", o.pod(o.Survivor)))
	}
	if want.replicas == single {
		return backToOne(o, want)
	}
	asks := want.subject() + " asks for three replicas"
	if stale := claimNames(o.claims(func(c Claim) bool { return c.Stale })); stale != "" {
		return stay(o, want.why, refuse(ReasonBlocked, fmt.Sprintf(
			"%s; the volumes %s were without a role for too long: objects deleted since would come back with them. Set highAvailability: false in ModuleConfig system-s3 until they are deleted, and then true again.",
			asks, stale)))
	}
	if o.Progress.Epoch != o.Epoch {
		return stay(o, want.why, accept(ReasonSwitching, asks+"; before, the replicas finish the change to one copy that has begun."))
	}
	if missing := o.missing(); missing != "" {
		return stay(o, want.why, accept(ReasonPreparing, fmt.Sprintf(
			"%s: two more are made ready, and these are awaited: %s. Until then nothing changes for clients, and it can be called back.", asks, missing)))
	}
	return o.rise(asks + ": all replicas are restarted at once, and clients wait for it. From here on it is finished before it can be changed again.")
}

// rise is the change to three copies.
func (o ObservedPlane) rise(message string) turn {
	next := o.Facts
	next.Replicas, next.ReplicationFactor, next.Epoch, next.Survivor = faultTolerant, faultTolerant, o.Epoch+1, 0
	return turn{facts: next, why: "Three replicas.", verdict: accept(ReasonSwitching, message)}
}

// backToOne takes the Pods without a role away once the replica that stays was proven to hold everything.
func backToOne(o ObservedPlane, want modeChoice) turn {
	if !o.whole() {
		return stay(o, want.why, accept(ReasonVerifying, fmt.Sprintf(
			"The replica %s holds the only copies in use; it is proven that none is missing before the volumes of the others are deleted. Until then highAvailability: true in ModuleConfig system-s3 calls it back.",
			o.pod(o.Survivor))))
	}
	next := o.Facts
	next.Replicas = single
	return turn{facts: next, why: want.why, verdict: accept(ReasonFinished, fmt.Sprintf(
		"The replica %s holds everything; the other replicas and their volumes go.", o.pod(o.Survivor)))}
}

// fromThree gives up two copies when somebody wrote that down (C5), and never before all three are whole.
func fromThree(c Cluster, o ObservedPlane, want modeChoice) turn {
	if !o.whole() {
		return stay(o, "Three replicas.", accept(ReasonCopying,
			"The store has three replicas; it is not proven yet that each of them holds all copies. Clients are served as soon as all tables are equal."))
	}
	if want.replicas != single {
		return stay(o, want.why, noMigration())
	}
	if want.setting == "" {
		// A cluster that lost a master must not lose copies of its data on top (C5).
		return stay(o, "Three replicas, as created: the control plane has one node now, and the store shrinks only when highAvailability: false is written down.", noMigration())
	}
	asks := want.subject() + " asks for one replica"
	survivor, found := fittest(c, o)
	if !found || !o.Progress.Proven || o.Progress.Epoch != o.Epoch {
		t := stay(o, "Three replicas, for now.", accept(ReasonVerifying, asks+
			"; before, it is proven that each of the three holds all copies. It can be called back until the volumes of the others are deleted."))
		t.survey = true
		return t
	}
	next := o.Facts
	next.ReplicationFactor, next.Epoch, next.Survivor = single, o.Epoch+1, survivor
	return turn{facts: next, why: want.why, verdict: accept(ReasonSwitching, fmt.Sprintf(
		"%s, which will be %s: writes wait until all tables are equal, then all replicas are restarted at once. It can be called back until the volumes of the others are deleted.",
		asks, o.pod(survivor)))}
}

// fittest is the replica that stays: of those that answer one whose node is of the tier, with room, of the lowest
// ordinal.
func fittest(c Cluster, o ObservedPlane) (int, bool) {
	place := placement(c, single, o.StorageClass)
	tier := c.labelled(place.label)
	candidates := o.claims(func(claim Claim) bool { return claim.Up && claim.Bound && !claim.Deleting })
	if len(candidates) == 0 {
		return 0, false
	}
	rank := func(claim Claim) int {
		worse := 0
		if !slices.Contains(tier, claim.Node) {
			worse += 2
		}
		if claim.Full {
			worse++
		}
		return worse
	}
	best := slices.MinFunc(candidates, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ordinal(), b.ordinal()))
	})
	return best.ordinal(), true
}

// whole tells whether the replicas with a role are proven to hold all copies. In the first epoch they were made so.
func (o ObservedPlane) whole() bool { return o.Epoch == 1 || o.Progress.Whole >= o.Epoch }

// missing names what of three replicas is not ready to get a role.
func (o ObservedPlane) missing() string {
	var found []string
	for ordinal := range faultTolerant {
		ready := o.claims(func(c Claim) bool { return c.ordinal() == ordinal && c.Bound && c.Up && !c.Deleting })
		if len(ready) == 0 {
			found = append(found, o.pod(ordinal))
		}
	}
	return strings.Join(found, ", ")
}

// others are the volumes of replicas besides the only one.
func (o ObservedPlane) others() []Claim {
	return o.claims(func(c Claim) bool { return c.ordinal() != o.Survivor })
}

func (o ObservedPlane) claims(keep func(Claim) bool) []Claim {
	return slices.DeleteFunc(slices.Clone(o.Claims), func(c Claim) bool { return !keep(c) })
}

func (o ObservedPlane) pod(ordinal int) string { return "garage-" + o.ID + "-" + strconv.Itoa(ordinal) }

// ordinal of the replica that the claim belongs to, -1 when its name tells none.
func (c Claim) ordinal() int {
	ordinal, err := strconv.Atoi(c.Name[strings.LastIndex(c.Name, "-")+1:])
	if err != nil {
		return -1
	}
	return ordinal
}

func claimNames(claims []Claim) string {
	return list(claims, ", ", func(c Claim) string { return c.Name })
}

// Members are the ordinals of the replicas that have a role in Garage.
func (f Facts) Members() []int {
	if f.ReplicationFactor == single {
		return []int{f.Survivor}
	}
	members := make([]int, 0, f.Replicas)
	for ordinal := range f.Replicas {
		members = append(members, ordinal)
	}
	return members
}

// start is the ordinal that the StatefulSet counts from.
func (f Facts) start() int {
	if f.Replicas == single {
		return f.Survivor
	}
	return 0
}
