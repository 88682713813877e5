package chart

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deckhouse/system-s3/lib/plan"
)

func (w world) role(node int, label string) world {
	w.cluster.Nodes[node].Labels = append(w.cluster.Nodes[node].Labels, label)
	return w
}

func (w world) full() world {
	w.cluster.Planes = []plan.ObservedPlane{{
		ID: "a", Facts: plan.Facts{StorageClass: "local", Replicas: 1, ReplicationFactor: 1, Epoch: 1}, Known: true, TemplateBytes: 10 << 30,
		Claims: []plan.Claim{{Name: "data-garage-a-0", Class: "local", Bytes: 10 << 30, Capacity: 10 << 30, Bound: true, Full: true, FullBytes: 10 << 30}},
	}}
	return w
}

// Replicas may go to nodes with the label of the tier and to no others, past the taints that such nodes may have.
func TestReplicasStayOnTheirTier(t *testing.T) {
	dedicated := []string{"dedicated.deckhouse.io=system-s3", "dedicated.deckhouse.io=system"}
	masterTaints := append(append([]string{}, dedicated...), "node-role.kubernetes.io/control-plane=", "node-role.kubernetes.io/master=")
	cases := map[string]struct {
		reason, label string
		world         world
		tolerates     []string
	}{
		"masters":                {"F1: the last tier", plan.MasterNodeLabel, masters(3).bucket(1), masterTaints},
		"system nodes":           {"F1: the second", plan.SystemNodeLabel, masters(3).system().bucket(1), dedicated},
		"a master with the role": {"F5: a way out that must not end at a taint", plan.SystemS3NodeLabel, masters(3).role(1, plan.SystemS3NodeLabel).bucket(1), masterTaints},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := podsOf(t, c.world)["garage"]
			terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			require.Equal(t, []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: c.label, Operator: corev1.NodeSelectorOpExists},
			}}}, terms, c.reason)
			tolerates := []string{}
			for _, toleration := range pod.Tolerations {
				tolerates = append(tolerates, toleration.Key+"="+toleration.Value)
			}
			require.Equal(t, c.tolerates, tolerates, c.reason)
		})
	}
}

func TestClaimTemplateFollowsThePlan(t *testing.T) {
	s := typed[appsv1.StatefulSet](t, byKey(t, masters(1).bucket(1).full())["StatefulSet/garage-a"])
	require.Equal(t, "15Gi", s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String(), "a replica made later starts at the wanted size")
	require.Equal(t, "local", *s.Spec.VolumeClaimTemplates[0].Spec.StorageClassName)
}

// C8: requests between these bounds when a Pod is made, and no running replica is ever evicted for them.
func TestAutoscalerOfGarage(t *testing.T) {
	vpa := byKey(t, masters(3).bucket(10).autoscaler())["VerticalPodAutoscaler/garage-a"]
	mode, _, err := unstructured.NestedString(vpa.Object, "spec", "updatePolicy", "updateMode")
	require.NoError(t, err)
	require.Equal(t, "Initial", mode)
	target, _, err := unstructured.NestedStringMap(vpa.Object, "spec", "targetRef")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "garage-a"}, target)
	policies, _, err := unstructured.NestedSlice(vpa.Object, "spec", "resourcePolicy", "containerPolicies")
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"containerName": "garage", "controlledValues": "RequestsOnly",
		"minAllowed": map[string]any{"cpu": "100m", "memory": "256Mi"}, "maxAllowed": map[string]any{"cpu": "2", "memory": "4Gi"},
	}, policies[0])
}

func TestWhatADrainAndAFullNodeMeet(t *testing.T) {
	w := masters(3).bucket(10)
	for name, pod := range podsOf(t, w) {
		require.Equal(t, "system-cluster-critical", pod.PriorityClassName, name)
	}
	for _, name := range []string{"garage-a", "controller"} {
		budget := typed[policyv1.PodDisruptionBudget](t, byKey(t, w)["PodDisruptionBudget/"+name])
		require.Equal(t, 1, budget.Spec.MaxUnavailable.IntValue(), "one at a time")
		require.NotEmpty(t, budget.Spec.Selector.MatchLabels)
	}
}

// F8: on masters only, whatever nodes the store has, and apart from each other when there are several.
func TestControllerStaysOnMasters(t *testing.T) {
	for name, w := range map[string]world{"masters": masters(3).bucket(1), "system": masters(3).system().bucket(1), "one replica": masters(2).bucket(1)} {
		pod := podsOf(t, w)["controller"]
		terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		require.Equal(t, plan.MasterNodeLabel, terms[0].MatchExpressions[0].Key, name)
		require.Equal(t, "kubernetes.io/hostname", pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey, name)
	}
}
