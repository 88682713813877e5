package cluster

import (
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/deckhouse/system-s3/tests/sandbox/node"
	"github.com/deckhouse/system-s3/tests/sandbox/process"
	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

var masterTaint = corev1.Taint{Key: masterRole, Effect: corev1.TaintEffectNoSchedule}

func object(labels map[string]string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", ResourceVersion: "7", Labels: labels},
		Spec:       corev1.NodeSpec{Taints: taints},
	}
}

func TestRolePatch(t *testing.T) {
	t.Parallel()

	labelled := map[string]string{masterRole: "", "zone": "a"}
	foreign := corev1.Taint{Key: "dedicated", Value: "s3", Effect: corev1.TaintEffectNoExecute}

	cases := map[string]struct {
		reason string
		node   *corev1.Node
		wanted role
		taints []corev1.Taint
		label  any
		none   bool
	}{
		"new master":      {reason: "label and taint, as installers do", node: object(nil), wanted: master, taints: []corev1.Taint{masterTaint}, label: ""},
		"new worker":      {reason: "a node is a worker by itself", node: object(nil), wanted: worker, none: true},
		"master already":  {reason: "nothing to do", node: object(labelled, masterTaint), wanted: master, none: true},
		"master retired":  {reason: "the label goes by a null", node: object(labelled, masterTaint), wanted: worker, taints: []corev1.Taint{}},
		"taint taken off": {reason: "half of a role is none", node: object(labelled), wanted: master, taints: []corev1.Taint{masterTaint}, label: ""},
		"others' taints":  {reason: "they stay", node: object(nil, foreign), wanted: master, taints: []corev1.Taint{foreign, masterTaint}, label: ""},
		"left alone":      {reason: "a node that was added by hand keeps its role", node: object(labelled), wanted: unchanged, none: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			patch, err := rolePatch(c.node, c.wanted)
			require.NoError(t, err)
			require.Equal(t, c.none, patch == nil, c.reason)

			if c.none {
				return
			}

			var got struct {
				Metadata struct {
					ResourceVersion string         `json:"resourceVersion"`
					Labels          map[string]any `json:"labels"`
				} `json:"metadata"`
				Spec struct {
					Taints []corev1.Taint `json:"taints"`
				} `json:"spec"`
			}
			require.NoError(t, json.Unmarshal(patch, &got))
			assert.Equal(t, c.taints, got.Spec.Taints, c.reason)
			assert.Equal(t, map[string]any{masterRole: c.label}, got.Metadata.Labels, "other labels are not touched")
			assert.Equal(t, "7", got.Metadata.ResourceVersion, "a change in between is not overwritten")
		})
	}
}

func TestAssignDeclaresTheDisk(t *testing.T) {
	t.Parallel()

	client := fake.NewClientset(object(nil))
	require.NoError(t, assign(t.Context(), client, "node-1", master))

	got, err := client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Contains(t, got.Labels, masterRole)
	assert.Equal(t, []corev1.Taint{masterTaint}, got.Spec.Taints)

	for _, list := range []corev1.ResourceList{got.Status.Capacity, got.Status.Allocatable} {
		room := list[corev1.ResourceEphemeralStorage]
		assert.Zero(t, room.Cmp(resource.MustParse(ephemeralStorage)), "Pods that request room on the disk find some")
	}
}

func ready(status corev1.ConditionStatus, at time.Time, taints ...corev1.Taint) *corev1.Node {
	n := object(nil, taints...)
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.NewTime(at)},
	}

	return n
}

func TestIsReady(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		node   *corev1.Node
		want   bool
	}{
		"ready":       {reason: "the kubelet says so", node: ready(corev1.ConditionTrue, time.Now()), want: true},
		"not ready":   {reason: "the kubelet says no", node: ready(corev1.ConditionFalse, time.Now())},
		"unknown":     {reason: "the kubelet says nothing any more", node: ready(corev1.ConditionUnknown, time.Now())},
		"new":         {reason: "the kubelet has not said anything", node: object(nil)},
		"unreachable": {reason: "Pods are not let in yet", node: ready(corev1.ConditionTrue, time.Now(), corev1.Taint{Key: corev1.TaintNodeUnreachable})},
		"closed":      {reason: "Pods are not let in yet", node: ready(corev1.ConditionTrue, time.Now(), corev1.Taint{Key: corev1.TaintNodeNotReady})},
		"master":      {reason: "its taint is for good", node: ready(corev1.ConditionTrue, time.Now(), masterTaint), want: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, isReady(c.node), c.reason)
		})
	}
}

// A node that was switched off for a moment still counts as ready: it is the word of
// its last kubelet.
func TestAwaitNodeWantsTheWordOfTheNewKubelet(t *testing.T) {
	t.Parallel()

	dir := statedir.Dir(t.TempDir())
	require.NoError(t, dir.Create())

	c := Cluster{Dir: dir, Processes: process.NewTable(dir, io.Discard)}
	require.NoError(t, c.Processes.Start(t.Context(), process.Spec{Name: node.Kubelet("node-1"), Args: []string{"sleep", "600"}}))

	kubelet, _, err := c.Processes.Find(node.Kubelet("node-1"))
	require.NoError(t, err)

	defer func() { assert.NoError(t, c.Processes.Stop(t.Context(), kubelet.Name, 0)) }()

	// The API has whole seconds: the second in which the kubelet started says nothing.
	stale := kubelet.Started.Truncate(time.Second)
	client := fake.NewClientset(ready(corev1.ConditionTrue, stale))
	done := make(chan error, 1)

	go func() { done <- c.awaitNode(t.Context(), client, "node-1") }()

	asked := func() bool { return len(client.Actions()) > 2 }
	require.Eventually(t, asked, 10*time.Second, 10*time.Millisecond)
	require.Empty(t, done, "it does not believe the old word")

	_, err = client.CoreV1().Nodes().UpdateStatus(t.Context(), ready(corev1.ConditionTrue, stale.Add(time.Second)), metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, <-done)
}

func TestAwaitNodeSaysWhyNot(t *testing.T) {
	t.Parallel()

	assert.Equal(t, "its kubelet has not reported", describe(object(nil)))

	sick := ready(corev1.ConditionFalse, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	sick.Status.Conditions[1].Message = "no network"
	assert.Equal(t, "ready: False at 03:04:05, no network", describe(sick))
}
