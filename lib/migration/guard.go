package migration

import (
	"fmt"
	"slices"

	"github.com/deckhouse/system-s3/lib/plan"
)

// Gap is why the journal does not tell everything that was written since before the last full pass began, empty when it
// does. A replica that is new or whose gateway was restarted has written what no journal tells. One that does not answer
// now has kept its journal, as far as anybody knows: that is no gap yet.
func (f Facts) Gap() string {
	if f.Journal.ID == "" {
		return "no journal was begun"
	}
	if f.Journal.Broken != "" {
		return f.Journal.Broken
	}
	if len(f.Doors) == 0 {
		return "the source has no gateway"
	}
	present := 0
	for _, d := range f.Doors {
		switch {
		case d.Run != "" && !f.Journal.Runs[d.Run]:
			return "the gateway of " + d.Name + " has begun after the journal"
		case d.Run != "":
			present++
		}
	}
	if present < len(f.Journal.Runs) {
		return "a gateway is gone, and its journal with it"
	}
	return ""
}

// Guard proves that the source may be deleted; it returns what is missing from the proof, empty when nothing is:
//
//	the switch is persisted, which comes after the verification only
//	the target serves, and all of its replicas have one layout
//	clients are sent to the target, and have been for a while
//	every gateway of the source forwards to it, or is gone
func (f Facts) Guard() string {
	switch {
	case f.State == nil || f.State.Phase != plan.PhaseSwitched && f.State.Phase != plan.PhaseRetiring:
		return "the switch to be persisted"
	case !f.Target.Whole:
		return f.Target.Awaited
	case f.Selected != f.State.Target:
		return "the Service to send clients to the target"
	case f.SelectedFor < LeaveLeast:
		return "clients to leave the source"
	}
	if i := slices.IndexFunc(f.Doors, Door.stays); i >= 0 {
		return fmt.Sprintf("the gateway of %s to forward", f.Doors[i].Name)
	}
	return ""
}

// stays tells whether the door may still be a way to the source.
func (d Door) stays() bool { return !d.Gone && (!d.Answers || d.To == "") }

func (f Facts) allFenced() bool {
	return len(f.Doors) > 0 && !slices.ContainsFunc(f.Doors, func(d Door) bool { return !d.Answers || !d.Fenced })
}

func (f Facts) allForward() bool {
	return !slices.ContainsFunc(f.Doors, Door.stays)
}

func (f Facts) anyFenced() bool {
	return slices.ContainsFunc(f.Doors, func(d Door) bool { return d.Answers && d.Fenced })
}

func (f Facts) anyForwards() bool {
	return slices.ContainsFunc(f.Doors, func(d Door) bool { return d.Answers && d.To != "" })
}
