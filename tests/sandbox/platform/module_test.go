package platform

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestJudge(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		wanted bool
		state  operatorState
		phase  string
		ready  bool
	}{
		"off":           {reason: "the user does not want it", state: operatorState{Enabled: true, Released: true}, phase: phaseAvailable},
		"not yet":       {reason: "addon-operator has not taken it up", wanted: true, phase: phaseReconciling},
		"not released":  {reason: "the chart is not in the cluster", wanted: true, state: operatorState{Enabled: true}, phase: phaseReconciling},
		"running":       {reason: "all is in place", wanted: true, state: operatorState{Enabled: true, Released: true}, phase: phaseReady, ready: true},
		"queue is held": {reason: "an error is told", wanted: true, state: operatorState{Enabled: true, Released: true, Failure: "boom"}, phase: phaseError},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := judge(c.wanted, c.state)
			assert.Equal(t, c.phase, got.phase, c.reason)
			assert.Equal(t, c.ready, got.conditions[3].holds, c.reason)

			for _, condition := range got.conditions {
				assert.NotEmpty(t, condition.reason, condition.kind)
			}
		})
	}
}

func TestVerdictLeavesForeignConditions(t *testing.T) {
	t.Parallel()

	foreign := map[string]any{"type": "StorageReady", "status": "True", "reason": "Ready", "lastTransitionTime": "2026-01-02T03:04:05Z"}
	old := map[string]any{"type": "IsReady", "status": "False", "reason": "NotReady", "lastTransitionTime": "2026-01-02T03:04:05Z"}
	module := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"conditions": []any{foreign, old}},
	}}

	require.NoError(t, judge(true, operatorState{}).write(module))

	conditions, _, err := unstructured.NestedSlice(module.Object, "status", "conditions")
	require.NoError(t, err)
	assert.Equal(t, foreign, conditions[0], "what the module says is the module's")

	ready, _ := conditions[1].(map[string]any)
	assert.Equal(t, "2026-01-02T03:04:05Z", ready["lastTransitionTime"], "no transition, no new time")
}
