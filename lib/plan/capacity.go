package plan

import (
	"fmt"
	"slices"
	"strings"
)

// sizes of each volume: what is needed now, and what is planned, which is more when it was needed once.
type sizes struct{ need, want int64 }

// capacity tells whether the volumes that exist are as large as they have to be, and if not, what stands in the way. The
// ladder goes from what only a person can mend to what mends itself.
func capacity(c Cluster, o ObservedPlane, s sizes) Verdict {
	found := map[state][]Claim{}
	for _, claim := range o.Claims {
		is := judge(claim, s, c.expandable(claim.Class))
		found[is] = append(found[is], claim)
	}
	switch {
	case len(found[rigid]) > 0:
		return refuse(ReasonExpansionNotAllowed, rigidMessage(c, s, found[rigid]))
	case len(found[failed]) > 0:
		return refuse(ReasonExpansionFailed, fmt.Sprintf(
			"Volumes should grow to %s, and the storage fails to do it, which it tries again: %s. Make room in the storage of StorageClass %s, or lower the sizes of SystemBuckets and delete objects.",
			quantity(s.want), list(found[failed], "; ", said), o.StorageClass))
	case len(found[full]) > 0:
		return refuse(ReasonExhausted, fmt.Sprintf(
			"Less than 5 %% is free on %s: volumes grow by themselves to %s. Should they not grow soon enough, delete objects.",
			list(found[full], ", ", sized), quantity(s.want)))
	case len(found[growing]) > 0:
		return accept(ReasonGrowing, fmt.Sprintf(
			"Volumes grow to %s, one after the other: %s.", quantity(s.want), list(found[growing], ", ", awaited)))
	}
	return accept(ReasonEnough, fmt.Sprintf("Each replica has a volume of %s.", quantity(smallest(o.Claims, s.want))))
}

// state of a claim, seen from what is wanted of it.
type state int

const (
	enough state = iota
	rigid
	failed
	full
	growing
)

func judge(c Claim, s sizes, growable bool) state {
	if !growable {
		if c.Full || c.Bytes < s.need {
			return rigid
		}
		return enough
	}
	switch {
	case c.Failure != "" && c.unfinished():
		return failed
	case c.Full:
		return full
	case c.Bytes < s.want || c.unfinished():
		return growing
	default:
		return enough
	}
}

// list tells of each thing.
func list[T any](things []T, separator string, tell func(T) string) string {
	told := make([]string, 0, len(things))
	for _, thing := range things {
		told = append(told, tell(thing))
	}
	return strings.Join(told, separator)
}

func sized(c Claim) string { return fmt.Sprintf("%s (%s)", c.Name, quantity(c.Bytes)) }

func said(c Claim) string { return c.Name + ": " + strings.TrimRight(c.Failure, ". ") }

func awaited(c Claim) string {
	if c.AwaitsPod {
		return c.Name + ", whose file system grows as soon as its replica runs"
	}
	return c.Name
}

// smallest is the size that every replica has.
func smallest(claims []Claim, otherwise int64) int64 {
	if len(claims) == 0 {
		return otherwise
	}
	return slices.MinFunc(claims, func(a, b Claim) int { return int(min(max(a.Bytes-b.Bytes, -1), 1)) }).Bytes
}

func rigidMessage(c Cluster, s sizes, claims []Claim) string {
	class := claims[0].Class
	why := fmt.Sprintf("StorageClass %s does not allow them to grow while in use: allow it with allowVolumeExpansion: true if its storage can do it", class)
	if _, exists := c.class(class); !exists {
		why = fmt.Sprintf("StorageClass %s does not exist any more, and nothing can make them grow: create it again with allowVolumeExpansion: true", class)
	}
	be := "are"
	if len(claims) == 1 {
		be = "is"
	}
	return fmt.Sprintf(
		"Volumes should be %s and %s %s not, but %s, or lower the sizes of SystemBuckets and delete objects. Uploads are refused with InsufficientStorage before a volume is full; reads and deletes go on.",
		quantity(s.need), list(claims, ", ", sized), be, why)
}

// unfinished tells whether the claim has less than it asks for.
func (c Claim) unfinished() bool { return c.Bound && c.Capacity < c.Bytes }

// NextClaims names the claims that should be asked to grow now, by name. It is one at a time while the replicas answer:
// should growth do harm, it harms one copy. A claim whose growth failed, or whose replica is not there to finish it,
// holds up no other one: the store must not fill up because of a node that is lost.
func NextClaims(p Plane, claims []Claim, classes []StorageClass) []string {
	c := Cluster{Classes: classes}
	var next []string
	for _, claim := range sortedClaims(claims) {
		if claim.unfinished() && claim.Up && claim.Failure == "" {
			return nil
		}
		if claim.Bound && !claim.Deleting && claim.Bytes < p.VolumeBytes && c.expandable(claim.Class) {
			next = append(next, claim.Name)
		}
	}
	return next[:min(len(next), 1)]
}
