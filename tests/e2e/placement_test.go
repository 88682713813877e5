package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

const (
	placementReady = "PlacementReady"
	capacityReady  = "CapacityReady"
)

// placing is what the chapters about the place and the size of a store share.
type placing struct{ story }

// chapter of a story; rest means that later ones rest on it.
type chapter struct {
	name string
	play func(*testing.T)
	rest bool
}

// tell plays chapters in order and leaves the nodes' roles as they were.
func tell(t *testing.T, chapters ...chapter) {
	t.Helper()
	before, err := roles(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if t.Failed() {
			site.Diagnose(ctx, namespace)
		}
		if err := assign(ctx, before); err != nil {
			t.Error(err)
		}
	})
	for _, c := range chapters {
		if !t.Run(c.name, c.play) && c.rest {
			t.Fatalf("the rest needs %q", c.name)
		}
	}
}

// roleLabels decide where the store runs.
var roleLabels = []string{plan.SystemS3NodeLabel, plan.SystemNodeLabel, plan.MasterNodeLabel}

// roles are the labels of each node that decide where the store runs.
func roles(ctx context.Context) (map[string][]string, error) {
	nodes := &corev1.NodeList{}
	if err := site.Admin.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	found := map[string][]string{}
	for _, node := range nodes.Items {
		found[node.Name] = []string{}
		for _, label := range roleLabels {
			if _, has := node.Labels[label]; has {
				found[node.Name] = append(found[node.Name], label)
			}
		}
	}
	return found, nil
}

// assign gives each node these roles and no other.
func assign(ctx context.Context, wanted map[string][]string) error {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		labels := []string{}
		for _, label := range roleLabels {
			value := "null"
			if slices.Contains(wanted[name], label) {
				value = `""`
			}
			labels = append(labels, fmt.Sprintf("%q:%s", label, value))
		}
		taints := "null" // a node that is no master has no master's taint
		if slices.Contains(wanted[name], plan.MasterNodeLabel) {
			taints = fmt.Sprintf(`[{"key":%q,"effect":"NoSchedule"}]`, plan.MasterNodeLabel)
		}
		patch := client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"labels":{`+strings.Join(labels, ",")+`}},"spec":{"taints":`+taints+`}}`))
		node := &corev1.Node{}
		node.Name = name
		if err := site.Deckhouse.Patch(ctx, node, patch); err != nil {
			return fmt.Errorf("give roles to node %s: %w", name, err)
		}
	}
	return nil
}

// cast gives roles to node-1, node-2 and node-3: a master each, or what is given.
func cast(t *testing.T, labels ...string) {
	t.Helper()
	require.NoError(t, assign(t.Context(), map[string][]string{
		"node-1": strings.Fields(labels[0]), "node-2": strings.Fields(labels[1]), "node-3": strings.Fields(labels[2]),
	}))
}

// awaitText waits until a condition says exactly this.
func awaitText(t *testing.T, kind, status, reason, message string) {
	t.Helper()
	want := stage.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: want.String(), Limit: storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		c, err := site.Condition(ctx, kind)
		return c == want, c.String(), err
	}}))
}

// places are the nodes of the replicas by Pod; empty for a Pod that has none.
func places(ctx context.Context) (map[string]string, error) {
	pods := &corev1.PodList{}
	err := site.Admin.List(ctx, pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.GarageApp})
	if err != nil {
		return nil, fmt.Errorf("list replicas: %w", err)
	}
	found := map[string]string{}
	for _, pod := range pods.Items {
		found[pod.Name] = pod.Spec.NodeName
	}
	return found, nil
}

func taken(t *testing.T) []string {
	t.Helper()
	found, err := places(t.Context())
	require.NoError(t, err)
	return slices.DeleteFunc(slices.Sorted(maps.Values(found)), func(node string) bool { return node == "" })
}

const master = plan.MasterNodeLabel

const (
	twoMasters = "Three replicas, each on a node of its own, need 3 nodes with the label node-role.kubernetes.io/control-plane, " +
		"and the cluster has 2 (node-1, node-2). Ways out: " + mastersWays + "."
	mastersWays = "give the label node-role.deckhouse.io/system-s3 to 3 nodes, " +
		"add nodes with the label node-role.kubernetes.io/control-plane, or set highAvailability: false in ModuleConfig system-s3"
	noLayout = "The layout needs 3 replicas with replication factor 3, but only 2 of them have a node; without one: garage-a-%d. Ways out: " + mastersWays + "."
)

// TestPlacement plays F5 as it happens: two masters, then a third one.
func TestPlacement(t *testing.T) {
	s := &placing{story{ledger: &ledger{}}}
	tell(t,
		chapter{name: "two masters, an empty store", play: s.twoMasters, rest: true},
		chapter{name: "the third replica has no place and the store does not start", play: s.isBlocked, rest: true},
		chapter{name: "a third master comes and the store starts", play: s.getsThird, rest: true},
		chapter{name: "a larger quota grows the volumes under writes", play: s.growsByQuota, rest: true},
		chapter{name: "a volume that is 95 % full grows by a step", play: s.growsByFilling},
	)
}

func (s *placing) twoMasters(t *testing.T) {
	cast(t, master, master, "")
	s.reset(t)
}

// isBlocked: a new installation with fewer nodes than copies does not start (F4, F5).
func (s *placing) isBlocked(t *testing.T) {
	require.NoError(t, site.Bucket(t.Context(), mainKey(), "1Gi"))
	awaitText(t, placementReady, "False", plan.ReasonPlacementBlocked, twoMasters)
	var homeless int
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "two replicas of three to have a node", Limit: storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		found, err := places(ctx)
		var without []string
		for pod, node := range found {
			if node == "" {
				without = append(without, pod)
			}
		}
		if len(found) != 3 || len(without) != 1 {
			return false, fmt.Sprint(found), err
		}
		_, err = fmt.Sscanf(without[0], "garage-a-%d", &homeless)
		return true, fmt.Sprint(found), err
	}}))
	require.Equal(t, []string{"node-1", "node-2"}, taken(t), "F3: one replica a node of the tier, and no other tier is taken")
	awaitText(t, storageReady, "False", plan.ReasonLayoutFailed, fmt.Sprintf(noLayout, homeless))
	_, ready, err := site.ReadBucket(t.Context(), mainKey())
	require.NoError(t, err)
	require.Equal(t, "WaitingForStorage", ready.Reason)
}

func (s *placing) getsThird(t *testing.T) {
	cast(t, master, master, master)
	awaitText(t, storageReady, "True", plan.ReasonReady, "The store serves all requests.")
	awaitText(t, placementReady, "True", plan.ReasonPlaced, "Three replicas on nodes with the label node-role.kubernetes.io/control-plane.")
	require.Equal(t, []string{"node-1", "node-2", "node-3"}, taken(t))
	require.NoError(t, site.AwaitBucket(t.Context(), mainKey(), storeLimit))
}

// pods are the replicas as they run: who they are and how often a container was started anew.
func pods(t *testing.T) map[string]string {
	t.Helper()
	list := &corev1.PodList{}
	require.NoError(t, site.Admin.List(t.Context(), list, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.GarageApp}))
	found := map[string]string{}
	for _, pod := range list.Items {
		var restarts int32
		for _, c := range pod.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		found[pod.Name] = fmt.Sprintf("%s, %d restarts", pod.UID, restarts)
	}
	return found
}

func statefulSet(t *testing.T) *appsv1.StatefulSet {
	t.Helper()
	set := &appsv1.StatefulSet{}
	require.NoError(t, site.Admin.Get(t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: names.GarageObject(plane)}, set))
	return set
}

func garageSets(ctx context.Context) ([]appsv1.StatefulSet, error) {
	list := &appsv1.StatefulSetList{}
	if err := site.Admin.List(ctx, list, client.InNamespace(names.Namespace)); err != nil {
		return nil, fmt.Errorf("list StatefulSets: %w", err)
	}
	return list.Items, nil
}
