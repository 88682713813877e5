package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Decide is the next step. The ladder is read from top to bottom:
//
//	the plan makes no sense               Refuse
//	roles as wanted, nothing staged       Steady
//	roles as wanted, something staged     Revert
//	a foreign node has a role             Refuse
//	a wanted node has no place            Refuse
//	a wanted node is not up               Wait
//	an older version is live              Wait
//	staged: exactly the changes           Apply
//	staged: something else                Revert
//	nothing staged                        Stage
//
// Nothing changes while a wanted node is missing: a layout over an incomplete set would be built a second time when
// the set is complete, and in between data lies where it does not belong.
func Decide(w World) Step {
	if problem := nonsense(w); problem != "" {
		return Step{Kind: Refuse, Reason: ReasonLayoutFailed, Message: problem}
	}
	changes := diff(w.Layout.Roles, w.Nodes)
	if len(changes) == 0 {
		return settle(w.Layout)
	}
	if blocked, ok := obstacle(w); ok {
		return blocked
	}
	return advance(w.Layout, changes)
}

func nonsense(w World) string {
	if w.Factor < 1 {
		return fmt.Sprintf("The plan has a replication factor of %d.", w.Factor)
	}
	if len(w.Nodes) < w.Factor {
		return fmt.Sprintf("The plan has %s for a replication factor of %d.", replicas(len(w.Nodes)), w.Factor)
	}
	seen := make(map[string]bool, len(w.Nodes))
	for _, node := range w.Nodes {
		if node.ID == "" || seen[node.ID] {
			return fmt.Sprintf("The Garage identity of %s is missing or belongs to another replica too.", node.Name)
		}
		seen[node.ID] = true
	}
	return ""
}

// settle is the end of the way: the roles are right, only leftovers may be staged.
func settle(l Layout) Step {
	if len(relevant(l)) > 0 || l.StagedParameters {
		return Step{
			Kind: Revert, Reason: ReasonReady,
			Message: "The layout is as planned; a change that was staged besides is thrown away.",
		}
	}
	return Step{Kind: Steady, Reason: ReasonReady, Message: "The layout is as planned."}
}

// obstacle tells why the roles cannot be changed now.
func obstacle(w World) (Step, bool) {
	if foreign := foreigners(w); len(foreign) > 0 {
		return Step{Kind: Refuse, Reason: ReasonLayoutFailed, Message: fmt.Sprintf(
			"The layout has nodes that the plan does not: %s. They are not removed, since they may hold the only copy of some data.",
			strings.Join(foreign, ", "))}, true
	}
	if homeless := namesOf(w.Nodes, Homeless); len(homeless) > 0 {
		return Step{Kind: Refuse, Reason: ReasonLayoutFailed, Message: fmt.Sprintf(
			"The layout needs %s with replication factor %d, but only %d of them have a node; without one: %s.",
			replicas(len(w.Nodes)), w.Factor, len(w.Nodes)-len(homeless), strings.Join(homeless, ", "))}, true
	}
	if starting := namesOf(w.Nodes, Starting); len(starting) > 0 {
		return Step{Kind: Wait, Reason: ReasonStarting, Message: fmt.Sprintf(
			"Waiting for %s to start and to connect, %d of %d replicas are up.",
			strings.Join(starting, ", "), len(w.Nodes)-len(starting), len(w.Nodes))}, true
	}
	if w.Layout.Draining {
		return Step{
			Kind: Wait, Reason: ReasonStarting,
			Message: "Waiting for all replicas to take over the present layout before the next one.",
		}, true
	}
	return Step{}, false
}

func advance(l Layout, changes []Change) Step {
	staged := relevant(l)
	switch {
	case slices.Equal(staged, changes) && !l.StagedParameters:
		return Step{
			Kind: Apply, Version: l.Version + 1, Reason: ReasonStarting,
			Message: fmt.Sprintf("Applying layout version %d.", l.Version+1),
		}
	case len(staged) > 0 || l.StagedParameters:
		return Step{
			Kind: Revert, Reason: ReasonStarting,
			Message: "Throwing away staged changes of the layout that are not the planned ones.",
		}
	default:
		return Step{
			Kind: Stage, Changes: changes, Reason: ReasonStarting,
			Message: fmt.Sprintf("Staging layout version %d.", l.Version+1),
		}
	}
}

// diff is what has to change so that every wanted node has its role, ordered by id.
func diff(roles []Role, nodes []Node) []Change {
	current := make(map[string]Role, len(roles))
	for _, role := range roles {
		current[role.ID] = role
	}
	var changes []Change
	wanted := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		wanted[node.ID] = true
		role := Role{ID: node.ID, Zone: node.Name, Capacity: Capacity}
		if current[node.ID] != role {
			changes = append(changes, Change{Role: role})
		}
	}
	for _, role := range roles {
		if !wanted[role.ID] {
			changes = append(changes, Change{Role: Role{ID: role.ID}, Remove: true})
		}
	}
	return sorted(changes)
}

// relevant is what is staged without removals of nodes that have no role: they linger in Garage's staging area, change
// nothing and must not hold us up.
func relevant(l Layout) []Change {
	current := make(map[string]bool, len(l.Roles))
	for _, role := range l.Roles {
		current[role.ID] = true
	}
	var staged []Change
	for _, change := range l.Staged {
		if change.Remove && !current[change.ID] {
			continue
		}
		if change.Remove {
			change = Change{Role: Role{ID: change.ID}, Remove: true}
		}
		staged = append(staged, change)
	}
	return sorted(staged)
}

func sorted(changes []Change) []Change {
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.ID, b.ID) })
	return changes
}

const shortID = 16 // digits of a node's id that Garage itself shows to people

func foreigners(w World) []string {
	wanted := make(map[string]bool, len(w.Nodes))
	for _, node := range w.Nodes {
		wanted[node.ID] = true
	}
	var foreign []string
	for _, role := range w.Layout.Roles {
		if !wanted[role.ID] {
			foreign = append(foreign, role.ID[:min(len(role.ID), shortID)])
		}
	}
	slices.Sort(foreign)
	return foreign
}

func namesOf(nodes []Node, presence Presence) []string {
	var found []string
	for _, node := range nodes {
		if node.Presence == presence {
			found = append(found, node.Name)
		}
	}
	slices.Sort(found)
	return found
}

func replicas(n int) string {
	if n == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", n)
}
