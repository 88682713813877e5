package status

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

// PlaneView is a Garage cluster with its replicas.
type PlaneView struct {
	ID, Role, Class, Volume string
	Copies                  int
	// Why are the planner's reasons, one sentence each.
	Why      []string
	Replicas []ReplicaView
}

// ReplicaView is a replica on its node with its volume.
type ReplicaView struct {
	Level     Level
	Name      string
	Node      string // empty while Pending
	State     string
	Used      int64 // percent of the volume
	Measured  bool
	Volume    string // its size
	Free      string
	VolumeBad bool
}

// Work is something that goes on by itself.
type Work struct {
	Title, Message string
	// Done of Total, in Unit; Total is 0 when nobody can tell how far it is.
	Done, Total int64
	Progress    string
	Left        string // empty when nobody can tell
}

func podName(plane string, ordinal int) string { return names.GaragePod(plane, ordinal) }

func (w World) state(id string) plan.PlaneState {
	for _, s := range w.State.Planes {
		if s.ID == id {
			return s
		}
	}
	return plan.PlaneState{ID: id}
}

func planes(w World) []PlaneView {
	views := make([]PlaneView, 0, len(w.Plan.Planes))
	for _, p := range w.Plan.Planes {
		view := PlaneView{ID: p.ID, Role: string(p.Role), Class: p.StorageClass, Volume: p.VolumeSize, Copies: p.ReplicationFactor}
		for _, why := range []string{p.Reasons.Replicas, p.Reasons.Tier, p.Reasons.StorageClass, p.Reasons.Volume} {
			if why != "" {
				view.Why = append(view.Why, why)
			}
		}
		state := w.state(p.ID)
		for ordinal := p.OrdinalsStart; ordinal < p.OrdinalsStart+p.Replicas; ordinal++ {
			view.Replicas = append(view.Replicas, replica(p.ID, ordinal, state))
		}
		views = append(views, view)
	}
	return views
}

func replica(plane string, ordinal int, state plan.PlaneState) ReplicaView {
	view := ReplicaView{Level: Unknown, Name: podName(plane, ordinal), State: "Not seen yet"}
	i := slices.IndexFunc(state.Replicas, func(r plan.ReplicaState) bool { return r.Ordinal == ordinal })
	if i < 0 {
		return view
	}
	r := state.Replicas[i]
	view.Node = r.Node
	view.Level, view.State = condition(r)
	if r.VolumeBytes > 0 {
		const hundred = 100
		view.Measured = true
		view.Volume, view.Free = Bytes(r.VolumeBytes), Bytes(r.VolumeFree)
		view.Used = hundred - int64(percent(r.VolumeFree, r.VolumeBytes))
		view.VolumeBad = plan.Full(r.VolumeBytes, r.VolumeFree)
	}
	return view
}

func condition(r plan.ReplicaState) (Level, string) {
	switch {
	case r.Node == "":
		return Warn, "Pending: it has no node"
	case !r.Up && !r.Ready:
		return Bad, "Down"
	case !r.Up:
		return Warn, "Not connected to the others"
	case !r.Ready:
		return Warn, "Up, not ready"
	default:
		return Good, "Ready"
	}
}

// works lists what goes on by itself.
func works(w World) []Work {
	var found []Work
	for _, p := range w.Plan.Planes {
		if work, runs := roll(w, p); runs {
			found = append(found, work)
		}
		if work, runs := growth(w, p); runs {
			found = append(found, work)
		}
	}
	if c := w.condition(placementReady); underWay(c.Reason) {
		found = append(found, Work{Title: "A replica is moving", Message: c.Message})
	}
	c := w.condition(migrationReady)
	switch {
	case w.State.Migration != nil:
		found = append(found, migration(*w.State.Migration, c.Message))
	case underWay(c.Reason):
		found = append(found, Work{Title: "The number of replicas changes", Message: c.Message})
	}
	return found
}

// migration is the move to another StorageClass. How far it is, is told by what takes longer, objects or bytes; the
// message has both.
func migration(m plan.MigrationState, message string) Work {
	work := Work{Title: "The store moves to another StorageClass: " + string(m.Phase), Message: message}
	if m.Objects == 0 || m.Phase != plan.PhaseCopying && m.Phase != plan.PhaseVerifying {
		return work
	}
	work.Done, work.Total = m.Copied, m.Objects
	if m.Bytes > 0 && percent(m.CopiedBytes, m.Bytes) < percent(m.Copied, m.Objects) {
		work.Done, work.Total = m.CopiedBytes, m.Bytes
	}
	work.Progress = fmt.Sprintf("%d of %s, %s of %s", m.Copied, plural(int(m.Objects), "object"), Bytes(m.CopiedBytes), Bytes(m.Bytes))
	if m.SecondsLeft > 0 {
		work.Left = left(time.Duration(m.SecondsLeft) * time.Second)
	}
	return work
}

// roll is the restart of one replica after the other with a changed template.
func roll(w World, p plan.Plane) (Work, bool) {
	var done []time.Time
	total := int64(0)
	for ordinal := p.OrdinalsStart; ordinal < p.OrdinalsStart+p.Replicas; ordinal++ {
		i := slices.IndexFunc(w.Pods, func(pod Pod) bool { return pod.Name == podName(p.ID, ordinal) })
		if i < 0 {
			continue
		}
		total++
		if w.Pods[i].Current {
			done = append(done, w.Pods[i].Created)
		}
	}
	n := int64(len(done))
	if total == 0 || n == total {
		return Work{}, false
	}
	return Work{
		Title:   "Replicas of plane " + p.ID + " are restarted one after the other",
		Message: "Each next one waits until the proof is complete that the others have all data. StorageReady tells what it waits for.",
		Done:    n, Total: total, Progress: fmt.Sprintf("%d of %s restarted", n, plural(int(total), "replica")),
		Left: pace(done, total, w.Now),
	}, true
}

// pace tells how long the rest takes if each step takes as long as those before; empty before there were two.
func pace(done []time.Time, total int64, now time.Time) string {
	n := len(done)
	if n < 2 { //nolint:mnd // a step is what lies between two
		return ""
	}
	slices.SortFunc(done, time.Time.Compare)
	step := done[n-1].Sub(done[0]) / time.Duration(n-1)
	rest := time.Duration(total-int64(n))*step - now.Sub(done[n-1])
	if rest < 0 {
		return "" // it takes longer than before, so there is nothing to promise
	}
	return left(rest)
}

// growth of volumes: claims that already have the wanted capacity.
func growth(w World, p plan.Plane) (Work, bool) {
	state := w.state(p.ID)
	if w.condition(capacityReady).Reason != plan.ReasonGrowing || p.Role != plan.RoleActive || len(state.Replicas) == 0 {
		return Work{}, false
	}
	done := int64(0)
	for _, r := range state.Replicas {
		if r.ClaimBytes >= p.VolumeBytes {
			done++
		}
	}
	total := int64(len(state.Replicas))
	return Work{
		Title: "Volumes grow to " + p.VolumeSize, Message: "The store is used meanwhile.",
		Done: done, Total: total, Progress: strconv.FormatInt(done, 10) + " of " + plural(int(total), "volume") + " grown",
	}, true
}
