package status_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/controller/internal/status"
	"github.com/deckhouse/system-s3/lib/plan"
)

var now = time.Date(2030, 1, 1, 3, 0, 0, 0, time.UTC)

// world is a store of three replicas in which all is well; each change makes another one of it.
func world(changes ...func(*status.World)) status.World {
	w := status.World{Now: now, Planned: true}
	w.Plan.Planes = []plan.Plane{{ID: "a", Role: plan.RoleActive, Replicas: 3, ReplicationFactor: 3, VolumeSize: "20Gi", VolumeBytes: 20 << 30}}
	s := plan.PlaneState{ID: "a", Healthy: true, Available: true}
	for i := range 3 {
		s.Replicas = append(s.Replicas, plan.ReplicaState{
			Ordinal: i, Node: fmt.Sprintf("node-%d", i), Up: true, Ready: true,
			VolumeBytes: 20 << 30, VolumeFree: int64(10-i) << 30, ClaimBytes: 20 << 30,
		})
	}
	w.State.Planes = []plan.PlaneState{s}
	for kind, reason := range map[string]string{
		"StorageReady": plan.ReasonReady, "PlacementReady": plan.ReasonPlaced, "CapacityReady": plan.ReasonEnough, "MigrationReady": plan.ReasonNotNeeded,
	} {
		w.Conditions = append(w.Conditions, status.Condition{Type: kind, Status: "True", Reason: reason, Message: "Fine.", Since: now.Add(-time.Hour)})
	}
	w.Buckets = []status.Bucket{bucket("d8-a", "one", 10<<30, 1<<30)}
	for _, change := range changes {
		change(&w)
	}
	return w
}

func bucket(namespace, name string, size, used int64) status.Bucket {
	return status.Bucket{
		Namespace: namespace, Name: name, Size: size, Used: used, Counted: true,
		Ready: status.Condition{Type: "Ready", Status: "True", Reason: "Ready"},
		Quota: status.Condition{Type: "QuotaAvailable", Status: "True", Reason: "WithinQuota"},
	}
}

func says(kind, value, reason string) func(*status.World) {
	return func(w *status.World) {
		for i := range w.Conditions {
			if w.Conditions[i].Type == kind {
				w.Conditions[i].Status, w.Conditions[i].Reason, w.Conditions[i].Message = value, reason, "As told."
			}
		}
	}
}

func unread(source status.Source) func(*status.World) {
	return func(w *status.World) { w.Unread = append(w.Unread, status.Unread{Source: source, Why: "refused"}) }
}

func buckets(list ...status.Bucket) func(*status.World) {
	return func(w *status.World) { w.Buckets = list }
}

func TestOverall(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		world    status.World
		level    status.Level
		title    string
		problems []string
	}{
		"well":      {"nothing to do", world(), status.Good, "All is well", nil},
		"first":     {"nothing is wrong before there is a bucket", world(says("StorageReady", "False", plan.ReasonWaitingForFirstBucket)), status.Idle, "Ready for the first bucket", nil},
		"no class":  {"nobody can store anything", world(says("StorageReady", "False", plan.ReasonNoStorageClass)), status.Bad, "The store is unavailable", []string{"StorageReady: no storage class"}},
		"quorum":    {"as bad as it gets", world(says("StorageReady", "False", plan.ReasonQuorumLost)), status.Bad, "The store is unavailable", []string{"StorageReady: quorum lost"}},
		"starting":  {"it will pass", world(says("StorageReady", "False", plan.ReasonStarting)), status.Bad, "The store is starting", []string{"StorageReady: starting"}},
		"degraded":  {"it works, and must not be taken for well", world(says("StorageReady", "True", plan.ReasonDegraded)), status.Warn, "The store works and needs attention", []string{"StorageReady: degraded"}},
		"blocked":   {"it works", world(says("PlacementReady", "False", plan.ReasonPlacementBlocked)), status.Warn, "The store works and needs attention", []string{"PlacementReady: placement blocked"}},
		"growing":   {"nobody has to do anything", world(says("CapacityReady", "True", plan.ReasonGrowing)), status.Busy, "All is well, work is under way", nil},
		"moving":    {"a planned move pages nobody, also when its condition is False", world(says("PlacementReady", "False", plan.ReasonRelocating)), status.Busy, "All is well, work is under way", nil},
		"full":      {"a bucket needs somebody", world(buckets(full())), status.Warn, "The store works and needs attention", []string{"1 bucket: full"}},
		"coming up": {"a Pod is ready a moment after the condition says so", world(func(w *status.World) { w.State.Planes[0].Replicas[1].Ready = false }), status.Busy, "The store works, replicas are coming up", nil},
		"unplanned": {"disabled, or not yet rendered", world(func(w *status.World) { w.Planned = false }), status.Idle, "The module is being set up or is leaving", nil},
		"silent":    {"no word is no good word", world(func(w *status.World) { w.Conditions = nil }), status.Unknown, "The state is not known yet", nil},
		"no plan":   {"an unreadable plan is not an absent one", world(unread(status.SourcePlan)), status.Unknown, "The state is not known", []string{"Not readable: the plan"}},
		"no module": {"unreadable conditions are not good ones", world(unread(status.SourceModule)), status.Unknown, "The state is not known", []string{"Not readable: the conditions of Module/system-s3"}},
		"no events": {"the store works all the same", world(unread(status.SourceEvents)), status.Warn, "The store works and needs attention", []string{"Not readable: the events"}},
		"unknown":   {"a status that is neither", world(says("StorageReady", "Unknown", "Lost")), status.Unknown, "The state is not known", []string{"StorageReady: lost"}},
		"worst first": {
			"the store comes before a bucket, what is bad before what is not", world(
				says("StorageReady", "False", plan.ReasonQuorumLost), says("CapacityReady", "False", plan.ReasonExhausted), buckets(full())),
			status.Bad, "The store is unavailable",
			[]string{"StorageReady: quorum lost", "CapacityReady: exhausted", "1 bucket: full"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := status.Look(c.world, status.Query{})
			require.Equal(t, c.level, view.Overall.Level, c.reason)
			require.Equal(t, c.title, view.Overall.Title, c.reason)
			require.NotEmpty(t, view.Overall.Message, c.reason)
			var titles []string
			for _, p := range view.Problems {
				titles = append(titles, p.Title)
				require.NotEmpty(t, p.Do, "each problem has its way out")
				require.NotEmpty(t, p.Message)
			}
			require.Equal(t, c.problems, titles, c.reason)
		})
	}
}

func full() status.Bucket {
	b := bucket("d8-a", "full", 10<<30, 10<<30)
	b.Quota = status.Condition{Type: "QuotaAvailable", Status: "False", Reason: "QuotaReached", Message: "Used up."}
	return b
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		state  plan.ReplicaState
		level  status.Level
		want   string
	}{
		"ready":     {"the quiet case", plan.ReplicaState{Node: "n", Up: true, Ready: true}, status.Good, "Ready"},
		"pending":   {"it has no place", plan.ReplicaState{}, status.Warn, "Pending: it has no node"},
		"down":      {"it has a place and is not there", plan.ReplicaState{Node: "n"}, status.Bad, "Down"},
		"apart":     {"its gateway answers, Garage does not see it", plan.ReplicaState{Node: "n", Ready: true}, status.Warn, "Not connected to the others"},
		"not ready": {"Garage sees it, the Pod is not ready", plan.ReplicaState{Node: "n", Up: true}, status.Warn, "Up, not ready"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world(func(w *status.World) { w.State.Planes[0].Replicas = []plan.ReplicaState{c.state} })
			replicas := status.Look(w, status.Query{}).Planes[0].Replicas
			require.Len(t, replicas, 3, "the plan's replicas are shown, also those that nobody has seen")
			require.Equal(t, c.level, replicas[0].Level, c.reason)
			require.Equal(t, c.want, replicas[0].State, c.reason)
			require.Equal(t, "Not seen yet", replicas[1].State)
			require.False(t, replicas[0].Measured, "no measurement is not an empty volume")
		})
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	view := status.Look(world(), status.Query{})
	require.Equal(t, []status.Fact{
		{Level: status.Good, Name: "Replicas ready", Value: "3 of 3"},
		{Level: status.Good, Name: "Least free space", Value: "8 GiB", Note: "40 % of the volume of garage-a-2"},
		{Level: status.Good, Name: "Buckets", Value: "1", Note: "all are ready"},
		{Level: status.Good, Name: "Stored", Value: "1 GiB", Note: "of quotas of 10 GiB"},
	}, view.Facts)
	waiting := bucket("d8-a", "b", 1, 0)
	waiting.Ready.Status, waiting.Ready.Reason = "False", "WaitingForStorage"
	require.Equal(t, "1 bucket not ready yet", status.Look(world(buckets(waiting)), status.Query{}).Facts[2].Note)
	require.Equal(t, "not known", status.Look(world(unread(status.SourceBuckets), buckets()), status.Query{}).Facts[2].Value)
}

func TestWorks(t *testing.T) {
	t.Parallel()
	pods := func(created ...time.Duration) func(*status.World) {
		return func(w *status.World) {
			for i := range 3 {
				p := status.Pod{Name: fmt.Sprintf("garage-a-%d", i)}
				if i < len(created) {
					p.Current, p.Created = true, now.Add(-created[i])
				}
				w.Pods = append(w.Pods, p)
			}
		}
	}
	cases := map[string]struct {
		reason string
		world  status.World
		want   []string // progress and time left
	}{
		"rest":        {"nothing to show", world(pods(3*time.Hour, 2*time.Hour, time.Hour)), nil},
		"roll begins": {"nobody knows yet how long a restart takes", world(pods()), []string{"0 of 3 replicas restarted, "}},
		"first":       {"one restart has no pace", world(pods(time.Minute)), []string{"1 of 3 replicas restarted, "}},
		"second":      {"ten minutes apart, four of them over", world(pods(14*time.Minute, 4*time.Minute)), []string{"2 of 3 replicas restarted, about 6 min left"}},
		"slow":        {"longer than before: no promise", world(pods(24*time.Minute, 14*time.Minute)), []string{"2 of 3 replicas restarted, "}},
		"almost":      {"seconds are not counted", world(pods(19*time.Minute+50*time.Second, 9*time.Minute+55*time.Second)), []string{"2 of 3 replicas restarted, less than a minute left"}},
		"growth":      {"claims tell", world(says("CapacityReady", "True", plan.ReasonGrowing), func(w *status.World) { w.State.Planes[0].Replicas[2].ClaimBytes = 15 << 30 }), []string{"2 of 3 volumes grown, "}},
		"copying":     {"how far it is nobody tells", world(says("MigrationReady", "False", plan.ReasonCopying)), []string{", "}},
		"migration": {"bytes are behind, and tell", world(says("MigrationReady", "True", plan.ReasonCopying), func(w *status.World) {
			w.State.Migration = &plan.MigrationState{Phase: plan.PhaseCopying, Objects: 200, Copied: 150, Bytes: 4 << 20, CopiedBytes: 1 << 20, SecondsLeft: 120}
		}), []string{"150 of 200 objects, 1 MiB of 4 MiB, about 2 min left"}},
		"migration switches": {"nothing to count", world(says("MigrationReady", "True", plan.ReasonSwitching), func(w *status.World) {
			w.State.Migration = &plan.MigrationState{Phase: plan.PhaseFencing, Objects: 200, Copied: 150}
		}), []string{", "}},
		"missing Pods": {"a Pod that is not there is not an old one", world(func(w *status.World) { w.Pods = nil }), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, work := range status.Look(c.world, status.Query{}).Works {
				require.NotEmpty(t, work.Title)
				got = append(got, work.Progress+", "+work.Left)
			}
			require.Equal(t, c.want, got, c.reason)
		})
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	w := world(func(w *status.World) {
		for i := range 30 {
			w.Events = append(w.Events, status.Event{At: now.Add(-time.Duration(i) * time.Hour), Warning: i == 1, Reason: fmt.Sprint(i), Count: 1})
		}
	})
	got := status.Look(w, status.Query{}).Events
	require.Len(t, got, 20, "the newest only")
	require.Equal(t, "0", got[0].Reason)
	require.Equal(t, "just now", got[0].At.Ago)
	require.Equal(t, "Warning", got[1].Kind)
	require.Equal(t, status.Warn, got[1].Level)
}
