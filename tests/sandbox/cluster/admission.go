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

// admit gives the nodes their roles (the first are the masters) and waits until
// all are ready.
func (c Cluster) admit(ctx context.Context, nodes []node.Node, masters int) error {
	client, err := controlplane.Client(c.Dir)
	if err != nil {
		return fmt.Errorf("admit the nodes: %w", err)
	}

	for i, n := range nodes {
		if err := assign(ctx, client, n.Name, i < masters); err != nil {
			return err
		}

	}

	for _, n := range nodes {
		if err := awaitNode(ctx, client, n.Name); err != nil {
			return err
		}
	}

	return nil
}

// awaitNode waits until the node is ready and open for Pods.
func awaitNode(ctx context.Context, client kubernetes.Interface, name string) error {
	ready := func(ctx context.Context) (bool, error) {
		object, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}

		return isReady(object), nil
	}

	if err := wait.PollUntilContextTimeout(ctx, readyInterval, readyLimit, true, ready); err != nil {
		return fmt.Errorf("%s does not become ready: %w", name, err)
	}

	return nil
}

func isReady(object *corev1.Node) bool {
	for _, taint := range object.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return false
		}
	}

	for _, condition := range object.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}

	return false
}

// assign makes the node a master or a worker, by the label and the taint that
// installers use, and gives it room for Pods. It waits for the kubelet to register
// the node.
func assign(ctx context.Context, client kubernetes.Interface, name string, master bool) error {
	done := func(ctx context.Context) (bool, error) {
		object, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, nil //nolint:nilerr // not registered yet
		}

		patch, err := rolePatch(object, master)
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
func rolePatch(object *corev1.Node, master bool) ([]byte, error) {
	_, labelled := object.Labels[masterRole]
	isTaint := func(t corev1.Taint) bool { return t.Key == masterRole }

	if labelled == master && slices.ContainsFunc(object.Spec.Taints, isTaint) == master {
		return nil, nil
	}

	taints := slices.DeleteFunc(slices.Clone(object.Spec.Taints), isTaint)

	var label any

	if master {
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
