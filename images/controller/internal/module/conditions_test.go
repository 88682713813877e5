package module_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/images/controller/internal/module"
	"github.com/deckhouse/system-s3/lib/plan"
)

var (
	first  = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	second = first.Add(time.Hour)
)

func storage(ok bool, reason string) []module.Condition {
	return []module.Condition{{Type: module.StorageReady, Verdict: plan.Verdict{OK: ok, Reason: reason, Message: "Because."}}}
}

func withConditions(t *testing.T, conditions ...any) *unstructured.Unstructured {
	t.Helper()
	object := module.Object()
	if len(conditions) == 0 {
		return object
	}
	require.NoError(t, unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions"))
	return object
}

func ours(status, reason, since string) map[string]any {
	return map[string]any{
		"type": "StorageReady", "status": status, "reason": reason, "message": "Because.", "lastTransitionTime": since,
	}
}

func TestPublish(t *testing.T) {
	t.Parallel()
	foreign := map[string]any{
		"type": "IsReady", "status": "True", "reason": "", "lastProbeTime": "2029-01-01T00:00:00Z", "unknown": "field",
	}
	then, now := "2030-01-02T03:04:05Z", "2030-01-02T04:04:05Z"
	cases := map[string]struct {
		reason  string
		present []any
		publish []module.Condition
		want    []any
		event   string
	}{
		"first": {"the list is empty", nil, storage(true, "Ready"), []any{ours("True", "Ready", now)}, "Normal Ready StorageReady=True: Because."},
		"beside others": {
			"conditions of others stay as they are, unknown fields too",
			[]any{foreign},
			storage(true, "Ready"),
			[]any{foreign, ours("True", "Ready", now)},
			"Normal Ready StorageReady=True: Because.",
		},
		"same":          {"nothing changes", []any{ours("True", "Ready", then)}, storage(true, "Ready"), []any{ours("True", "Ready", then)}, ""},
		"other reason":  {"the time is that of the status", []any{ours("True", "Ready", then)}, storage(true, "Degraded"), []any{ours("True", "Degraded", then)}, "Normal Degraded StorageReady=True: Because."},
		"other status":  {"a transition", []any{ours("True", "Ready", then)}, storage(false, "QuorumLost"), []any{ours("False", "QuorumLost", now)}, "Warning QuorumLost StorageReady=False: Because."},
		"no time":       {"the platform requires one", []any{ours("True", "Ready", "")}, storage(true, "Ready"), []any{ours("True", "Ready", now)}, ""},
		"no opinion":    {"a condition needs a reason", []any{foreign}, storage(false, ""), []any{foreign}, ""},
		"not yet":       {"a beginning is no warning", nil, storage(false, "Starting"), []any{ours("False", "Starting", now)}, "Normal Starting StorageReady=False: Because."},
		"was overwrote": {"somebody wrote an old copy back", []any{ours("False", "Starting", then)}, storage(true, "Ready"), []any{ours("True", "Ready", now)}, "Normal Ready StorageReady=True: Because."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kube := fixture.Builder(t).WithObjects(withConditions(t, c.present...)).Build()
			recorder := events.NewFakeRecorder(10)
			publisher := module.Conditions{Client: kube, Events: recorder, Now: func() time.Time { return second }}
			require.NoError(t, publisher.Publish(t.Context(), c.publish))
			got := module.Object()
			require.NoError(t, kube.Get(t.Context(), client.ObjectKeyFromObject(got), got))
			list, _, err := unstructured.NestedSlice(got.Object, "status", "conditions")
			require.NoError(t, err)
			assert.Equal(t, c.want, list, c.reason)

			require.NoError(t, publisher.Publish(t.Context(), c.publish))
			again := module.Object()
			require.NoError(t, kube.Get(t.Context(), client.ObjectKeyFromObject(again), again))
			assert.Equal(t, got.GetResourceVersion(), again.GetResourceVersion(), "the second time nothing is written")
			close(recorder.Events)
			assert.Equal(t, c.event, <-recorder.Events, "a transition is told once")
			assert.Empty(t, <-recorder.Events, "a transition is told once")
		})
	}
}

func TestPublishWithoutModule(t *testing.T) {
	t.Parallel()
	kube := fixture.Builder(t).Build()
	require.NoError(t, module.Conditions{Client: kube, Events: events.NewFakeRecorder(1), Now: time.Now}.Publish(t.Context(), storage(true, "Ready")))
	got := module.Object()
	assert.True(t, apierrors.IsNotFound(kube.Get(t.Context(), client.ObjectKeyFromObject(got), got)), "it is not ours to make")
}
