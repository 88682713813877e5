package plane

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deckhouse/system-s3/lib/layout"
	moving "github.com/deckhouse/system-s3/lib/migration"
	"github.com/deckhouse/system-s3/lib/plan"
)

// storage is the verdict of StorageReady. The ladder goes from what keeps the store from existing to what it lacks; a
// store that works without redundancy is ready, with the reason Degraded.
func storage(p plan.Plan, active *outcome) plan.Verdict {
	if !p.Storage.OK {
		return p.Storage
	}
	if active == nil {
		return no(plan.ReasonStarting, "The plan has no active plane yet.")
	}
	verdict := plan.Verdict{OK: true, Reason: plan.ReasonReady, Message: "The store serves all requests."}
	for _, rule := range []func(outcome) (plan.Verdict, bool){changing, blind, quorumLost, layoutFailed, starting, degraded, incomplete} {
		if told, speaks := rule(*active); speaks {
			verdict = told
			break
		}
	}
	if active.Rolling != "" {
		verdict.Message += " " + active.Rolling
	}
	return verdict
}

func no(reason, message string) plan.Verdict { return plan.Verdict{Reason: reason, Message: message} }

// changing: the number of copies changes. Before it is restarted a store serves, and after it until clients are let in
// it does not.
func changing(o outcome) (plan.Verdict, bool) {
	switch {
	case o.Crossing.Kind == layout.Arrived && !o.Crossing.Shut:
		return plan.Verdict{}, false
	case o.Problem != "":
		return no(plan.ReasonStarting, o.Problem), true
	case o.Crossing.Kind != layout.Arrived && o.Garage != nil && o.Garage.Health.Available():
		return plan.Verdict{OK: true, Reason: plan.ReasonReady, Message: "The store serves all requests. " + o.Crossing.Progress}, true
	case o.Crossing.Progress != "":
		return no(plan.ReasonStarting, o.Crossing.Progress), true
	case o.Step.Kind == layout.Refuse:
		return plan.Verdict{}, false
	default:
		return no(plan.ReasonStarting, "The replicas start with another number of copies: "+absence(o.facts)+"."), true
	}
}

// migration is the verdict of MigrationReady: the planner's, and how far it is.
func migration(t telling, active *outcome) plan.Verdict {
	told := t.wanted.Migration
	if m := t.previous.Migration; m != nil && told.Reason != plan.ReasonNotNeeded {
		if progress := moving.Told(*m); progress != "" {
			told.Message += " " + progress
		}
	}
	if active != nil && active.Crossing.Progress != "" && told.Reason != plan.ReasonNotNeeded {
		told.Message += " " + active.Crossing.Progress
	}
	return told
}

// blind: the plane cannot be reached for a reason that lies outside of it, such as a Secret that is missing.
func blind(o outcome) (plan.Verdict, bool) {
	return no(plan.ReasonStarting, o.Problem), o.Garage == nil && o.Problem != ""
}

// quorumLost: a store with data, fewer replicas than reads and writes need.
func quorumLost(o outcome) (plan.Verdict, bool) {
	if !o.existed() || o.Garage != nil && o.Garage.Health.Available() {
		return plan.Verdict{}, false
	}
	if o.Garage != nil && o.up() >= quorum(o.Plane.ReplicationFactor) {
		return plan.Verdict{}, false // connecting, or a first layout being taken over
	}
	if o.Garage == nil {
		// That nobody answers the controller does not prove that nobody answers consumers.
		return no(plan.ReasonQuorumLost, fmt.Sprintf(
			"No replica answers the controller: %s. The store is taken for unavailable. Bring back the nodes that these Pods ran on; if the Pods are ready, the controller's log tells why it cannot reach them.",
			absence(o.facts))), true
	}
	return no(plan.ReasonQuorumLost, fmt.Sprintf(
		"%s up, at least %d must be: %s. The store is unavailable. Bring back the nodes that these Pods ran on, or the volumes to nodes of the tier.",
		count(o.up(), len(o.Replicas)), quorum(o.Plane.ReplicationFactor), absence(o.facts))), true
}

func layoutFailed(o outcome) (plan.Verdict, bool) {
	if o.Step.Kind != layout.Refuse {
		return plan.Verdict{}, false
	}
	return no(plan.ReasonLayoutFailed, o.Step.Message+wayOut(o.facts)), true
}

// wayOut names what an administrator can do about replicas without a place (SPEC F5).
func wayOut(f facts) string {
	if len(f.homeless()) == 0 {
		return ""
	}
	return " Ways out: " + f.Plane.WaysOut() + "."
}

func starting(o outcome) (plan.Verdict, bool) {
	switch {
	case o.usable():
		return plan.Verdict{}, false
	case o.Problem != "":
		return no(plan.ReasonStarting, o.Problem), true
	case o.Step.Kind != layout.Steady:
		return no(plan.ReasonStarting, o.Step.Message), true
	case o.Garage == nil:
		return no(plan.ReasonStarting, "Waiting for a Garage node to answer."), true
	default:
		return no(plan.ReasonStarting, "Waiting for Garage's nodes to take over layout and key."), true
	}
}

func degraded(o outcome) (plan.Verdict, bool) {
	if o.Garage.Health.Healthy() {
		return plan.Verdict{}, false
	}
	return plan.Verdict{OK: true, Reason: plan.ReasonDegraded, Message: fmt.Sprintf(
		"%s up: %s. The store works without redundancy; the loss of another replica makes it unavailable.",
		count(o.up(), len(o.Replicas)), absence(o.facts))}, true
}

// incomplete: a replica is up and does not hold everything yet. Its progress is told in steps that stay for a while.
func incomplete(o outcome) (plan.Verdict, bool) {
	const step = 10
	for _, r := range o.Replicas {
		if !o.behind(r) {
			continue
		}
		message := fmt.Sprintf("%s started with an empty volume and is filled from the other replicas", r.Pod)
		if fill := o.fill(r); fill != nil {
			message += fmt.Sprintf(", %d %% is there", fill.Percent/step*step)
		}
		if o.Awaited != "" {
			message += "; it is not done before: " + o.Awaited
		}
		return plan.Verdict{
			OK: true, Reason: plan.ReasonDegraded, Message: message + ". Until then, do not take another replica's node or disk away.",
		}, true
	}
	return plan.Verdict{}, false
}

// quorum is how many copies reads and writes need.
func quorum(factor int) int { return factor/2 + 1 } //nolint:mnd // a majority

func count(n, of int) string {
	if n == 1 {
		return fmt.Sprintf("1 of %d replicas is", of)
	}
	return fmt.Sprintf("%d of %d replicas are", n, of)
}

// absence tells why each replica that is not up is not.
func absence(f facts) string {
	var reasons []string
	for _, r := range f.Replicas {
		switch {
		case f.isUp(r):
		case !r.Exists:
			reasons = append(reasons, r.Pod+" has no Pod")
		case r.Unschedulable != "":
			reasons = append(reasons, fmt.Sprintf("%s has no node (%s)", r.Pod, cause(r)))
		case r.Node == "":
			reasons = append(reasons, r.Pod+" has no node yet")
		case f.Garage == nil:
			reasons = append(reasons, fmt.Sprintf("%s on node %s does not answer", r.Pod, r.Node))
		default:
			reasons = append(reasons, fmt.Sprintf("%s on node %s is not connected", r.Pod, r.Node))
		}
	}
	if len(reasons) == 0 {
		return "the nodes are not connected with each other"
	}
	return strings.Join(reasons, ", ")
}

// placement is the verdict of PlacementReady: the planner's, and what the scheduler made of it.
func placement(p plan.Plan, active *outcome) plan.Verdict {
	if active != nil && active.Place.Reason != "" {
		return placed(p.Placement, active.Place)
	}
	if !p.Placement.OK || active == nil {
		return p.Placement
	}
	homeless := active.homeless()
	if len(homeless) == 0 {
		return p.Placement
	}
	placed := len(active.Replicas) - len(homeless)
	have := "have"
	if placed == 1 {
		have = "has"
	}
	return no(plan.ReasonPlacementBlocked, fmt.Sprintf(
		"%d of %d replicas %s a node with the label %s, each its own; for the others the scheduler finds none: %s.%s",
		placed, len(active.Replicas), have, active.Plane.NodeLabel, unschedulable(homeless), wayOut(active.facts)))
}

// placed is what the controller has to say of places, after what the planner has, unless both say that nodes are missing.
func placed(planned plan.Verdict, place layout.Notice) plan.Verdict {
	switch {
	case planned.OK:
		return no(place.Reason, placeMessage(place))
	case place.Reason == plan.ReasonPlacementBlocked:
		return planned
	}
	planned.Message += " " + placeMessage(place)
	return planned
}

func unschedulable(homeless []replica) string {
	told := make([]string, 0, len(homeless))
	for _, r := range homeless {
		told = append(told, r.Pod+": "+cause(r))
	}
	return strings.Join(told, "; ")
}

// cause is the first sentence of what the scheduler says; the others are about preemption, which nobody here waits for.
func cause(r replica) string {
	first, _, _ := strings.Cut(r.Unschedulable, ". ")
	return strings.TrimSuffix(first, ".")
}

// capacity is the verdict of CapacityReady: the planner's, who hears of a full volume, and of its growth, a moment later
// than the controller sees it. That moment must not show as a change of mind.
func capacity(p plan.Plan, active *outcome) plan.Verdict {
	if active == nil || !p.Capacity.OK && p.Capacity.Reason != plan.ReasonExhausted {
		return p.Capacity
	}
	i := slices.IndexFunc(active.Replicas, replica.full)
	unknown := slices.ContainsFunc(active.Replicas, func(r replica) bool { return r.Space.Total == 0 })
	switch {
	case p.Capacity.OK && i >= 0:
		return no(plan.ReasonExhausted, "Less than 5 % is free on the volume of "+active.Replicas[i].Pod+
			": it grows by itself if its StorageClass allows it. Should it not grow soon enough, delete objects.")
	case !p.Capacity.OK && i < 0 && !unknown:
		return plan.Verdict{OK: true, Reason: plan.ReasonGrowing, Message: "Volumes grow to " + active.Plane.VolumeSize + "."}
	default:
		return p.Capacity
	}
}
