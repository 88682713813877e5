package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/plan"
)

func TestWhoWasWithoutARoleForTooLong(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	since := func(d time.Duration) string { return ago(d).UTC().Format(time.RFC3339) }
	cases := map[string]struct {
		reason string
		made   time.Time
		epoch  int
		since  string
		want   bool
	}{
		"the first epoch":           {"nobody else ever had a role", ago(100 * time.Hour), 1, since(99 * time.Hour), false},
		"a new volume":              {"it never had one", ago(time.Hour), 2, since(99 * time.Hour), false},
		"left a moment ago":         {"what was deleted since is known", ago(100 * time.Hour), 2, since(time.Hour), false},
		"left yesterday":            {"deletions may be forgotten", ago(100 * time.Hour), 2, since(13 * time.Hour), true},
		"nobody knows when":         {"an unknown time is a long one", ago(time.Minute), 2, "", true},
		"there is no volume":        {"nothing to be stale", time.Time{}, 2, since(99 * time.Hour), false},
		"the epoch is not in force": {"it has its role still", ago(100 * time.Hour), 3, since(99 * time.Hour), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			previous := plan.PlaneState{Epoch: min(c.epoch, 2), EpochSince: c.since}
			assert.Equal(t, c.want, stale(replica{Claim: claim{Made: c.made}}, previous, c.epoch), c.reason)
		})
	}
}

func TestPodTellsItsEpoch(t *testing.T) {
	t.Parallel()
	made := func(value string) corev1.Pod {
		return corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{
			{Name: "other", Env: []corev1.EnvVar{{Name: epochVariable, Value: "9"}}},
			{Name: prepareContainer, Env: []corev1.EnvVar{{Name: epochVariable, Value: value}}},
		}}}
	}
	assert.Equal(t, 3, podEpoch(made("3")))
	assert.Equal(t, 1, podEpoch(made("x")))
	assert.Equal(t, 1, podEpoch(corev1.Pod{}), "a template that tells none is of the first")
}

func TestAChangeIsTold(t *testing.T) {
	t.Parallel()
	cross := func(o told, c crossing) told { o.Crossing = c; return o }
	lingering := crossing{Crosswise: layout.Crosswise{Kind: layout.Linger}, Progress: "It waits."}
	cases := map[string]struct {
		reason string
		story  told
		ok     bool
		want   string
	}{
		"it serves on":          {"nothing is restarted yet", cross(healthy(3), lingering), true, "The store serves all requests. It waits."},
		"all are restarted":     {"it is no loss of the quorum", cross(healthy(3).silent(), lingering), false, "It waits."},
		"clients wait":          {"tables are not equal", cross(healthy(3), crossing{Shut: true, Progress: "Clients wait."}), false, "Clients wait."},
		"clients wait, no word": {"who is awaited", cross(healthy(3).down(1), crossing{Shut: true}), false, "The replicas start with another number of copies: garage-a-b on node node-b is not connected."},
		"over":                  {"the ladder goes on", healthy(3), true, "The store serves all requests."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict := storage(plan.Plan{Storage: plan.Verdict{OK: true}}, &c.story.outcome)
			assert.Equal(t, c.ok, verdict.OK, c.reason)
			assert.Equal(t, c.want, verdict.Message, c.reason)
		})
	}
	asked := plan.Plan{Migration: plan.Verdict{OK: true, Reason: plan.ReasonVerifying, Message: "One is asked for."}}
	busy := cross(healthy(3), crossing{Progress: "So far: x."})
	assert.Equal(t, "One is asked for. So far: x.", migration(telling{wanted: asked}, &busy.outcome).Message)
	assert.Equal(t, "One is asked for.", migration(telling{wanted: asked}, nil).Message)
}

func TestNoFirstLayoutOfWhatWasNotHandedOver(t *testing.T) {
	t.Parallel()
	single := func(version, handed int) facts {
		o := healthy(1)
		o.Plane.Epoch, o.Garage.Layout.Version, o.Previous.Handed = 2, version, handed
		return o.facts
	}
	assert.True(t, single(0, 0).unfinished(), "it was restarted before the others handed over")
	assert.True(t, single(0, 1).unfinished())
	assert.False(t, single(0, 2).unfinished())
	assert.False(t, single(1, 0).unfinished(), "it has one: the controller's word was lost since")
}
