package status

import (
	"fmt"
	"slices"
	"time"

	"github.com/deckhouse/system-s3/lib/plan"
)

// Level is how much attention something needs. It is always shown with a word, never by colour alone.
type Level string

// Levels.
const (
	Good    Level = "good"
	Busy    Level = "busy"
	Idle    Level = "idle"
	Unknown Level = "unknown"
	Warn    Level = "warn"
	Bad     Level = "bad"
)

// View is what the page says.
type View struct {
	At         time.Time
	Version    string
	Overall    Overall
	Facts      []Fact
	Problems   []Problem
	Works      []Work
	Conditions []ConditionView
	Planes     []PlaneView
	Buckets    Buckets
	Access     Access
	Events     []EventView
	// EventsUnread tells that there may be events, which nobody could read.
	EventsUnread bool
}

// Overall is the store in one glance.
type Overall struct {
	Level          Level
	Title, Message string
}

// Fact is a number with its name.
type Fact struct {
	Level             Level
	Name, Value, Note string
}

// Problem is something that needs a person, with the way out.
type Problem struct {
	Level          Level
	Title, Message string
	// Do is what to do; Command is what to type to look closer; Link leads to the rows that it is about.
	Do, Command, Link string
	Since             When
}

// ConditionView is a row of the table of conditions.
type ConditionView struct {
	Level                         Level
	Type, Status, Reason, Message string
	Since                         When
}

// Look makes the View.
func Look(w World, q Query) View {
	v := View{At: w.Now, Version: w.Version}
	v.Conditions = conditions(w)
	v.Planes = planes(w)
	v.Works = works(w)
	v.Buckets = buckets(w, q)
	v.Access = access(w, v.Buckets)
	v.Events = events(w)
	v.EventsUnread = w.unread(SourceEvents)
	v.Problems = problems(w)
	v.Facts = facts(w, v)
	v.Overall = overall(w, v)
	return v
}

func (w World) unread(source Source) bool {
	return slices.ContainsFunc(w.Unread, func(u Unread) bool { return u.Source == source })
}

func (w World) condition(conditionType string) Condition {
	for _, c := range w.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return Condition{}
}

// Types of our conditions on Module/system-s3.
const (
	storageReady   = "StorageReady"
	placementReady = "PlacementReady"
	capacityReady  = "CapacityReady"
	migrationReady = "MigrationReady"
)

func conditionTypes() []string {
	return []string{storageReady, placementReady, capacityReady, migrationReady}
}

func conditions(w World) []ConditionView {
	views := make([]ConditionView, 0, len(conditionTypes()))
	for _, name := range conditionTypes() {
		c := w.condition(name)
		if c.Type == "" {
			views = append(views, ConditionView{Level: Unknown, Type: name, Status: "Unknown", Message: "Nobody has told it yet."})
			continue
		}
		views = append(views, ConditionView{
			Level: levelOf(c), Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, Since: when(c.Since, w.Now),
		})
	}
	return views
}

// levelOf is how much attention a condition of the Module needs.
func levelOf(c Condition) Level {
	switch {
	case c.Reason == plan.ReasonWaitingForFirstBucket:
		return Idle
	case c.Status == "True":
		return levelOfTrue(c.Reason)
	case c.Status != "False":
		return Unknown
	case c.Type == storageReady:
		return Bad
	case underWay(c.Reason):
		return Busy
	default:
		return Warn
	}
}

func levelOfTrue(reason string) Level {
	switch {
	case reason == plan.ReasonDegraded:
		return Warn
	case underWay(reason):
		return Busy
	default:
		return Good
	}
}

// underWay are the reasons of work that goes on by itself and ends by itself.
func underWay(reason string) bool {
	return slices.Contains([]string{
		plan.ReasonGrowing, plan.ReasonRelocating, plan.ReasonCopying, plan.ReasonVerifying, plan.ReasonSwitching,
	}, reason)
}

// overall is a ladder from what is worst to the quiet case.
func overall(w World, v View) Overall {
	storage := w.condition(storageReady)
	level := levelOf(storage)
	switch {
	case w.unread(SourcePlan), w.unread(SourceModule):
		return Overall{Unknown, "The state is not known", "The page could not read what the store says about itself; this says nothing about the store."}
	case !w.Planned:
		return Overall{Idle, "The module is being set up or is leaving", "There is no plan for the store at present."}
	case storage.Type == "":
		return Overall{Unknown, "The state is not known yet", "The controller has not told the state of the store yet."}
	case level == Idle:
		return Overall{Idle, "Ready for the first bucket", storage.Message}
	case level == Unknown:
		return Overall{Unknown, "The state is not known", storage.Message}
	case level == Bad:
		return Overall{Bad, unavailable(storage.Reason), storage.Message}
	case len(v.Problems) > 0:
		return Overall{Warn, "The store works and needs attention", fmt.Sprintf("%s below, each with its way out. The first: %s.", plural(len(v.Problems), "problem"), v.Problems[0].Title)}
	default:
		return quiet(v, storage.Message)
	}
}

// quiet is what is said when nobody has to do anything.
func quiet(v View, message string) Overall {
	up, all := replicasUp(v)
	switch {
	case len(v.Works) > 0:
		return Overall{Busy, "All is well, work is under way", v.Works[0].Title + "."}
	case up < all:
		// A condition is told a moment before or after the replicas are.
		return Overall{Busy, "The store works, replicas are coming up", fmt.Sprintf("%d of %d replicas are ready. %s", up, all, message)}
	default:
		return Overall{Good, "All is well", message}
	}
}

func unavailable(reason string) string {
	if reason == plan.ReasonStarting {
		return "The store is starting"
	}
	return "The store is unavailable"
}

// problems lists what needs a person: what the store says, worst first, then single buckets.
func problems(w World) []Problem {
	var found []Problem
	for _, u := range w.Unread {
		found = append(found, Problem{
			Level: Unknown, Title: "Not readable: " + string(u.Source), Message: u.Why,
			Do: "What is missing here may exist all the same. If it lasts, look at the log of the controller.", Command: logCommand,
		})
	}
	for _, name := range conditionTypes() {
		c := w.condition(name)
		if level := levelOf(c); c.Type != "" && (level == Bad || level == Warn || level == Unknown) {
			advised := adviceFor(c.Reason)
			found = append(found, Problem{
				Level: level, Title: c.Type + ": " + words(c.Reason), Message: c.Message,
				Do: advised.do, Command: advised.command, Since: when(c.Since, w.Now),
			})
		}
	}
	found = append(found, planeProblems(w)...)
	order := []Level{Bad, Warn, Unknown}
	slices.SortStableFunc(found, func(a, b Problem) int {
		return slices.Index(order, a.Level) - slices.Index(order, b.Level)
	})
	return append(found, bucketProblems(w)...)
}

func planeProblems(w World) []Problem {
	var found []Problem
	for _, p := range w.Plan.Planes {
		if p.Frozen != "" {
			found = append(found, Problem{
				Level: Warn, Title: "Plane " + p.ID + " is left as it is", Message: p.Frozen,
				Do: adviceFor(plan.ReasonStateUnreadable).do,
			})
		}
	}
	return found
}

func facts(w World, v View) []Fact {
	return []Fact{replicaFact(v), volumeFact(w), bucketFact(w, v), usedFact(w)}
}

func replicasUp(v View) (up, all int) {
	for _, p := range v.Planes {
		for _, r := range p.Replicas {
			all++
			if r.Level == Good {
				up++
			}
		}
	}
	return up, all
}

func replicaFact(v View) Fact {
	up, all := replicasUp(v)
	f := Fact{Level: Good, Name: "Replicas ready", Value: fmt.Sprintf("%d of %d", up, all)}
	switch {
	case all == 0:
		f.Level, f.Value, f.Note = Idle, "none", "nothing is stored yet"
	case up < all:
		f.Level, f.Note = Warn, plural(all-up, "replica")+" not ready"
	}
	return f
}

// volumeFact is the fullest volume: it decides when growth and refusals begin.
func volumeFact(w World) Fact {
	least, free, at := 101.0, int64(0), ""
	for _, p := range w.State.Planes {
		for _, r := range p.Replicas {
			if r.VolumeBytes > 0 && percent(r.VolumeFree, r.VolumeBytes) < least {
				least, free, at = percent(r.VolumeFree, r.VolumeBytes), r.VolumeFree, podName(p.ID, r.Ordinal)
			}
		}
	}
	if at == "" {
		return Fact{Level: Idle, Name: "Least free space", Value: "not measured"}
	}
	f := Fact{Level: Good, Name: "Least free space", Value: Bytes(free), Note: fmt.Sprintf("%.0f %% of the volume of %s", least, at)}
	if least < 5 { //nolint:mnd // SPEC D3
		f.Level = Warn
	}
	return f
}

func bucketFact(w World, v View) Fact {
	if w.unread(SourceBuckets) {
		return Fact{Level: Unknown, Name: "Buckets", Value: "not known"}
	}
	f := Fact{Level: Good, Name: "Buckets", Value: Number(int64(v.Buckets.Total)), Note: "all are ready"}
	switch {
	case v.Buckets.Total == 0:
		f.Level, f.Note = Idle, "create a SystemBucket to begin"
	case v.Buckets.Troubled > 0:
		f.Level, f.Note = Warn, plural(v.Buckets.Troubled, "bucket")+" to look at"
	case v.Buckets.Waiting > 0:
		f.Level, f.Note = Busy, plural(v.Buckets.Waiting, "bucket")+" not ready yet"
	}
	return f
}

func usedFact(w World) Fact {
	var used, size int64
	for _, b := range w.Buckets {
		used += b.Used
		size += b.Size
	}
	return Fact{Level: Good, Name: "Stored", Value: Bytes(used), Note: "of quotas of " + Bytes(size)}
}
