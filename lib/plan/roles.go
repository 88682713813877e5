package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// cast gives each plane the role it has now. The role on its objects is what the planner said last. The controller's
// word comes first: it is written before anything follows from it, and a plane that it calls the store has what clients
// wrote.
func cast(c Cluster) []ObservedPlane {
	planes := slices.Clone(c.Planes)
	for i := range planes {
		planes[i].Role = c.Migration.role(planes[i].ID, planes[i].Role)
	}
	for i := range planes {
		if c.Migration.dispensable(planes, planes[i]) {
			planes[i] = planes[i].dismissed()
		}
	}
	// The source retires only after the switch, and an abandoned target only beside a source that is active.
	targets := of(planes, RoleTarget)
	if len(of(planes, RoleActive)) == 0 && len(of(planes, RoleRetiring)) > 0 && len(targets) == 1 {
		planes[indexOf(planes, targets[0].ID)].Role = RoleActive
	}
	return planes
}

// role is what the plane is, of which the role is printed.
func (m *MigrationState) role(id string, printed Role) Role {
	switch {
	case m == nil:
	case m.Phase.switched() && id == m.Source:
		return RoleRetiring
	case m.Phase.switched() && id == m.Target:
		return RoleActive
	case m.Phase.Fenced() && id == m.Target:
		return RoleTarget
	}
	return cmp.Or(printed, RoleActive)
}

// dispensable tells whether the plane may be lost: it retires already, or it cannot be read and another plane, which
// can be read, is proven to be the store.
func (m *MigrationState) dispensable(planes []ObservedPlane, o ObservedPlane) bool {
	switch {
	case o.Role == RoleRetiring:
		return true
	case o.readable() || m == nil || o.ID != m.Target || !m.Phase.revocable():
		return false
	}
	source := indexOf(planes, m.Source)
	return source >= 0 && planes[source].readable() && planes[source].Role == RoleActive
}

// dismissed is the plane as one that retires. Of its facts nothing follows any more.
func (o ObservedPlane) dismissed() ObservedPlane {
	if !o.Known {
		class := "unknown"
		if len(o.Claims) > 0 {
			class = cmp.Or(o.Claims[0].Class, class)
		}
		o.Known, o.Facts = true, Facts{StorageClass: class, Replicas: max(len(o.Claims), single), ReplicationFactor: single, Epoch: 1}
	}
	o.Role, o.Unreadable = RoleRetiring, ""
	return o
}

func (o ObservedPlane) readable() bool { return o.Known && o.Unreadable == "" }

// miscast tells what is wrong with the roles of planes that can be read; empty when nothing is.
func miscast(c Cluster) string {
	const wayOut = "set the annotation system-s3.deckhouse.io/role of StatefulSet and Secret to active for the one that has the data, and to target for the other"
	m := c.Migration
	active, targets := of(c.Planes, RoleActive), of(c.Planes, RoleTarget)
	switch {
	case len(c.Planes) == 0:
		return ""
	case m != nil && m.Phase.Fenced() && indexOf(c.Planes, m.Target) < 0 && indexOf(c.Planes, m.Source) >= 0:
		return fmt.Sprintf(
			"The store stays as it is: its move from plane %s to plane %s cannot be called back any more, and nothing of plane %s exists. Put Secret garage-%s back from a backup.",
			m.Source, m.Target, m.Target, m.Target)
	case len(active) == 0:
		return fmt.Sprintf("The store stays as it is, because none of its planes (%s) is the active one: %s.", planeNames(c.Planes), wayOut)
	case len(active) > 1:
		return fmt.Sprintf("The store stays as it is, because %d planes (%s) call themselves the active one: %s.", len(active), planeNames(active), wayOut)
	case len(targets) > 1:
		return fmt.Sprintf("The store stays as it is, because %d planes (%s) call themselves the target of its move: delete the StatefulSet, the Secret and the PersistentVolumeClaims of the one that nobody needs.",
			len(targets), planeNames(targets))
	}
	return ""
}

// leading is the plane that clients are led to.
func leading(planes []ObservedPlane) string {
	candidates := of(planes, RoleActive)
	slices.SortStableFunc(candidates, func(a, b ObservedPlane) int { return unknownLast(a) - unknownLast(b) })
	if len(candidates) == 0 {
		return FirstPlane
	}
	return candidates[0].ID
}

func unknownLast(o ObservedPlane) int {
	if o.Known {
		return 0
	}
	return 1
}

// of are the planes with the role.
func of(planes []ObservedPlane, role Role) []ObservedPlane {
	return slices.DeleteFunc(slices.Clone(planes), func(o ObservedPlane) bool { return o.Role != role })
}

func indexOf(planes []ObservedPlane, id string) int {
	return slices.IndexFunc(planes, func(o ObservedPlane) bool { return o.ID == id })
}

func planeNames(planes []ObservedPlane) string {
	return list(planes, ", ", func(o ObservedPlane) string { return o.ID })
}
