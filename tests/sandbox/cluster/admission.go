package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/deckhouse/system-s3/tests/sandbox/controlplane"
	"github.com/deckhouse/system-s3/tests/sandbox/node"
)

const (
	masterRole = "node-role.kubernetes.io/control-plane"
	readyLimit = 2 * time.Minute

	ephemeralStorage = "50Gi"
	readyInterval    = 200 * time.Millisecond
)

// admit gives the nodes their roles and waits until all are ready.
func (c Cluster) admit(ctx context.Context, nodes []node.Node, o Options) error {
	client, err := controlplane.Client(c.Dir)
	if err != nil {
		return fmt.Errorf("admit the nodes: %w", err)
	}

	for _, n := range nodes {
		if err := assign(ctx, client, n.Name, o.role(n)); err != nil {
			return err
		}
	}

	for _, n := range nodes {
		if err := c.awaitNode(ctx, client, n.Name); err != nil {
			return err
		}
	}

	return nil
}

// awaitNode waits until the node is ready and open for Pods, by the word of the
// kubelet that runs now: what an earlier one said stands for a while after its end.
func (c Cluster) awaitNode(ctx context.Context, client kubernetes.Interface, name string) error {
	// Without a record nothing is known of an earlier kubelet either.
	kubelet, _, err := c.Processes.Find(node.Kubelet(name))
	if err != nil {
		return fmt.Errorf("find the kubelet of %s: %w", name, err)
	}

	last := "it has not registered"
	ready := func(ctx context.Context) (bool, error) {
		object, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}

		last = describe(object)

		return isReady(object) && heartbeat(object).After(kubelet.Started), nil
	}

	if err := wait.PollUntilContextTimeout(ctx, readyInterval, readyLimit, true, ready); err != nil {
		return fmt.Errorf("%s does not become ready (%s), see %s: %w", name, last, c.Dir.Log(node.Kubelet(name)), err)
	}

	return nil
}

// readiness is what the kubelet says about itself; nil when it has said nothing.
func readiness(object *corev1.Node) *corev1.NodeCondition {
	for i := range object.Status.Conditions {
		if object.Status.Conditions[i].Type == corev1.NodeReady {
			return &object.Status.Conditions[i]
		}
	}

	return nil
}

// heartbeat is when the kubelet said so, in whole seconds rounded down.
func heartbeat(object *corev1.Node) time.Time {
	if condition := readiness(object); condition != nil {
		return condition.LastHeartbeatTime.Time
	}

	return time.Time{}
}

// describe says for people how ready the node is.
func describe(object *corev1.Node) string {
	condition := readiness(object)
	if condition == nil {
		return "its kubelet has not reported"
	}

	return fmt.Sprintf("ready: %s at %s, %s", condition.Status, condition.LastHeartbeatTime.Format(time.TimeOnly), condition.Message)
}

func isReady(object *corev1.Node) bool {
	for _, taint := range object.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return false
		}
	}

	condition := readiness(object)

	return condition != nil && condition.Status == corev1.ConditionTrue
}

// assign makes the node a master or a worker, by the label and the taint that
// installers use, and gives it room for Pods. It waits for the kubelet to register
// the node.
func assign(ctx context.Context, client kubernetes.Interface, name string, wanted role) error {
	done := func(ctx context.Context) (bool, error) {
		object, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, nil //nolint:nilerr // not registered yet
		}

		patch, err := rolePatch(object, wanted)
		if err != nil || patch == nil {
			return patch == nil, err
		}

		_, err = client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		if apierrors.IsConflict(err) {
			return false, nil
		}

		return err == nil, err
	}

	if err := wait.PollUntilContextTimeout(ctx, readyInterval, readyLimit, true, done); err != nil {
		return fmt.Errorf("give %s its role: %w", name, err)
	}

	return declareDisk(ctx, client, name)
}

// declareDisk gives the node room for Pods that request ephemeral storage: its kubelet runs without the isolation of
// local storage, which needs more of the machine than a network namespace has, and so reports none.
func declareDisk(ctx context.Context, client kubernetes.Interface, name string) error {
	room := map[string]string{string(corev1.ResourceEphemeralStorage): ephemeralStorage}

	patch, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": room, "allocatable": room}})
	if err != nil {
		return fmt.Errorf("encode the disk of %s: %w", name, err)
	}

	if _, err := client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("declare the disk of %s: %w", name, err)
	}

	return nil
}

// rolePatch is the change that the node needs; nil when it has its role.
func rolePatch(object *corev1.Node, wanted role) ([]byte, error) {
	_, labelled := object.Labels[masterRole]
	isTaint := func(t corev1.Taint) bool { return t.Key == masterRole }
	tainted := slices.ContainsFunc(object.Spec.Taints, isTaint)

	if wanted == unchanged || labelled == (wanted == master) && tainted == (wanted == master) {
		return nil, nil
	}

	taints := slices.DeleteFunc(slices.Clone(object.Spec.Taints), isTaint)

	var label any

	if wanted == master {
		label = ""
		taints = append(taints, corev1.Taint{Key: masterRole, Effect: corev1.TaintEffectNoSchedule})
	}

	patch, err := json.Marshal(map[string]any{
		// Taints are one list: a change by another in between must not be lost.
		"metadata": map[string]any{"resourceVersion": object.ResourceVersion, "labels": map[string]any{masterRole: label}},
		"spec":     map[string]any{"taints": taints},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the role: %w", err)
	}

	return patch, nil
}
