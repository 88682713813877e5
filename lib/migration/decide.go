package migration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deckhouse/system-s3/lib/plan"
)

// Next decides the next step. The ladder:
//
//	a plane cannot be read            Await: nothing is known to be true of it. Not while clients wait for the switch
//	nothing persisted                 see begin
//	the target is abandoned           Delete it, as long as nothing was fenced
//	the target is gone                Forget, as long as nothing was fenced
//	otherwise                         the step of the phase
func Next(f Facts) Step {
	if frozen := f.frozen(); frozen != "" && !f.urgent() {
		return await(frozen)
	}
	if f.State == nil {
		return f.begin()
	}
	if target, there := f.plane(f.State.Target); !f.State.Phase.Fenced() {
		switch {
		case !there:
			return Step{Kind: Forget, Why: "the target is gone"}
		case target.Role == plan.RoleRetiring && f.frozen() == "":
			return Step{Kind: Delete, Plane: target.ID, Why: "the migration was called back"}
		}
	}
	return f.phase()
}

// frozen is what is waited for when a plane cannot be read, empty when all can be.
func (f Facts) frozen() string {
	for _, p := range f.Planes {
		if p.Frozen {
			return "all facts of plane " + p.ID + " to be readable"
		}
	}
	return ""
}

// urgent tells whether clients wait, or may: nothing is deleted in these phases.
func (f Facts) urgent() bool {
	if f.State == nil {
		return false
	}
	return f.State.Phase == plan.PhaseHolding || f.State.Phase == plan.PhaseFencing || f.State.Phase == plan.PhaseSwitched
}

func (f Facts) phase() Step {
	switch f.State.Phase {
	case plan.PhaseSwitched:
		return f.switched()
	case plan.PhaseRetiring:
		return f.retire()
	}
	for _, id := range []string{f.State.Source, f.State.Target} {
		if _, there := f.plane(id); !there {
			return await("plane " + id + " to be planned")
		}
	}
	step, known := map[plan.Phase]func() Step{
		plan.PhasePreparing: f.prepare, plan.PhaseCopying: f.copy, plan.PhaseVerifying: f.verify, plan.PhaseHolding: f.hold, plan.PhaseFencing: f.fence,
	}[f.State.Phase]
	if !known {
		return await(fmt.Sprintf("a controller that knows the phase %q", f.State.Phase))
	}
	return step()
}

// begin: a state that is lost must not begin anew what was fenced already, so the doors are asked first.
func (f Facts) begin() Step {
	active, _ := f.role(plan.RoleActive)
	source, target := active, Plane{}
	if found, there := f.role(plan.RoleTarget); there {
		target = found
	} else if retiring, there := f.role(plan.RoleRetiring); there {
		return f.beginRetiring(active, retiring)
	}
	if active.ID == "" || target.ID == "" {
		return Step{Kind: Rest}
	}
	step := Step{Kind: Record, Phase: plan.PhasePreparing, Source: source.ID, Target: target.ID, Why: "a target is planned"}
	switch {
	case f.anyForwards():
		step.Phase, step.Why = plan.PhaseSwitched, "what was persisted is lost, and a gateway forwards already"
	case f.anyFenced():
		step.Phase, step.Why = plan.PhaseFencing, "what was persisted is lost, and a gateway is fenced already"
	case f.away() != "":
		return await(f.away() + " to tell whether it is fenced")
	}
	return step
}

// beginRetiring: a plane retires and nothing is known of why. One that forwards was switched from; one that is not even
// fenced is an abandoned target.
func (f Facts) beginRetiring(active, retiring Plane) Step {
	switch {
	case active.ID == "":
		return await("the plan to have an active plane")
	case f.Deleting:
		return Step{Kind: Delete, Plane: retiring.ID, Why: "its deletion had begun"}
	case f.anyForwards():
		return Step{Kind: Record, Phase: plan.PhaseSwitched, Source: retiring.ID, Target: active.ID, Why: "what was persisted is lost, and the retiring plane forwards"}
	case f.away() != "" || f.anyFenced() || len(f.Doors) == 0:
		return await("the gateways of the retiring plane " + retiring.ID + " to tell whether they forward")
	}
	return Step{Kind: Record, Phase: plan.PhasePreparing, Source: active.ID, Target: retiring.ID, Why: "what was persisted is lost, and the retiring plane was never fenced"}
}

func (f Facts) prepare() Step {
	if !f.Target.Whole {
		return await(f.Target.Awaited)
	}
	if away := f.away(); away != "" {
		return await(away)
	}
	return Step{Kind: Record, Phase: plan.PhaseCopying, Why: "the target is ready"}
}

// copy begins a pass whenever the journal has a gap: what was written in the gap is known to nobody.
func (f Facts) copy() Step {
	switch gap := f.Gap(); {
	case !f.Target.Whole:
		return await(f.Target.Awaited)
	case gap != "" && f.away() != "":
		return await(f.away())
	case gap != "":
		return Step{Kind: Copy, Why: gap}
	case f.Work.Running:
		return await(f.Work.Trouble)
	case !f.Work.Copied:
		return Step{Kind: Copy, Why: "the pass did not end", Awaited: f.Work.Trouble}
	}
	return Step{Kind: Record, Phase: plan.PhaseVerifying, Why: "a full pass ended"}
}

func (f Facts) verify() Step {
	switch gap := f.Gap(); {
	case gap != "":
		return Step{Kind: Record, Phase: plan.PhaseCopying, Why: gap}
	case f.Work.Mismatch != "":
		return await(f.Work.Mismatch + " cannot be read back from the target as it was copied, twice; its disks are to be checked, or the StorageClass is to be set back")
	case f.Work.Running:
		return await(f.Work.Trouble)
	case !f.Work.Verified:
		return Step{Kind: Verify, Why: "everything is copied", Awaited: f.Work.Trouble}
	}
	if awaited := f.unreadyToHold(); awaited != "" {
		return await(awaited)
	}
	return Step{Kind: Record, Phase: plan.PhaseHolding, Why: "everything is verified"}
}

// unreadyToHold is what is waited for before writes may be held, empty when nothing is.
func (f Facts) unreadyToHold() string {
	switch {
	case !f.Target.Whole:
		return f.Target.Awaited
	case f.away() != "":
		return f.away()
	case f.Uploads.Count > 0 && f.Uploads.Waited < UploadsMost:
		return fmt.Sprintf("unfinished multipart uploads (%d) to end; those that have not after %d minutes are left behind", f.Uploads.Count, int(UploadsMost.Minutes()))
	case f.Journal.Behind:
		return "what was written meanwhile to be copied"
	case f.Hold.Resting > 0:
		return "writes to become fewer, since their rest could not be copied within seconds"
	}
	return ""
}

func (f Facts) hold() Step {
	if gap := f.Gap(); gap != "" {
		return Step{Kind: LetGo, Phase: plan.PhaseCopying, Why: gap}
	}
	if why := f.unfitToHold(); why != "" {
		return Step{Kind: LetGo, Phase: plan.PhaseVerifying, Why: why}
	}
	switch {
	case !f.Hold.Held:
		return Step{Kind: HoldOn, Why: "the rest is copied while nothing is written"}
	case !f.Hold.Drained:
		return Step{Kind: Settle, Why: "nothing is written"}
	case f.Uploads.Count > 0 && f.Uploads.Waited < UploadsMost:
		return Step{Kind: LetGo, Phase: plan.PhaseVerifying, Why: "a multipart upload was begun meanwhile"}
	}
	return Step{Kind: Record, Phase: plan.PhaseFencing, Why: "the target has everything"}
}

// unfitToHold is why writes may not be held any longer, empty when they may.
func (f Facts) unfitToHold() string {
	switch {
	case f.away() != "":
		return f.away() + " is away"
	case !f.Target.Whole:
		return f.Target.Awaited
	case f.frozen() != "":
		return f.frozen()
	case !f.Work.Verified:
		return "the verification is not known to have ended"
	case f.Hold.For > HoldMost:
		return "the rest took too long"
	}
	return ""
}

// fence: there is no way back. Without a journal, because the controller was restarted, everything is compared again.
func (f Facts) fence() Step {
	if !f.allFenced() {
		return Step{Kind: Fence, Why: "nothing is to be written to the source any more", Awaited: f.away()}
	}
	if !f.Hold.Held {
		return Step{Kind: Fence, Why: "writes that are on their way are waited for"}
	}
	if gap := f.Gap(); gap != "" {
		switch {
		case f.Work.PassedFenced:
			return Step{Kind: Record, Phase: plan.PhaseSwitched, Why: "everything was compared under the fence"}
		case f.Work.Running:
			return await(f.Work.Trouble)
		}
		return Step{Kind: Again, Why: gap, Awaited: f.Work.Trouble}
	}
	if !f.Hold.Drained {
		return Step{Kind: Settle, Why: "the fence stands"}
	}
	return Step{Kind: Record, Phase: plan.PhaseSwitched, Why: "the target has everything, and the fence stands"}
}

func (f Facts) switched() Step {
	source, there := f.plane(f.State.Source)
	switch {
	case !there:
		return Step{Kind: Forget, Why: "the source is gone"}
	case !f.allForward():
		return Step{Kind: Forward, Why: "the target is the store", Awaited: f.away()}
	case source.Role != plan.RoleRetiring:
		return await("the plan to take the target for the store")
	}
	if awaited := f.Guard(); awaited != "" {
		return await(awaited)
	}
	return Step{Kind: Record, Phase: plan.PhaseRetiring, Why: "nobody needs the source any more"}
}

func (f Facts) retire() Step {
	source, there := f.plane(f.State.Source)
	if !there {
		return Step{Kind: Forget, Why: "the source is gone"}
	}
	if source.Role != plan.RoleRetiring {
		return await("the plan to let the source go")
	}
	if awaited := f.Guard(); awaited != "" {
		return await(awaited)
	}
	return Step{Kind: Delete, Plane: source.ID, Why: "nobody needs the source any more"}
}

func await(what string) Step { return Step{Kind: Await, Awaited: what} }

func (f Facts) plane(id string) (Plane, bool) {
	i := slices.IndexFunc(f.Planes, func(p Plane) bool { return p.ID == id })
	if i < 0 {
		return Plane{}, false
	}
	return f.Planes[i], true
}

func (f Facts) role(role plan.Role) (Plane, bool) {
	i := slices.IndexFunc(f.Planes, func(p Plane) bool { return p.Role == role })
	if i < 0 {
		return Plane{}, false
	}
	return f.Planes[i], true
}

// away names the doors that do not answer, empty when all do.
func (f Facts) away() string {
	var names []string
	for _, d := range f.Doors {
		if !d.Answers && !d.Gone {
			names = append(names, d.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "the gateway of " + strings.Join(names, ", ")
}
