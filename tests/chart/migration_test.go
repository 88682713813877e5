package chart

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

// voyage is a world with two planes, with what each of them is.
type voyage struct {
	world             world
	active            string
	rolesOf           map[string]string // of planes that are printed
	retiring, passing string
}

func voyages() map[string]voyage {
	return map[string]voyage{
		"copying": {
			world: masters(3).bucket(10).moving(plan.PhaseCopying, false), active: "a",
			rolesOf: map[string]string{"a": "active", "b": "target"}, passing: "b",
		},
		"switched": {
			world: masters(3).bucket(10).moving(plan.PhaseSwitched, false), active: "b",
			rolesOf: map[string]string{"b": "active"}, retiring: "a", passing: "a",
		},
		"aborting": {
			world: masters(3).bucket(10).moving(plan.PhaseVerifying, true), active: "a",
			rolesOf: map[string]string{"a": "active"}, retiring: "b", passing: "b",
		},
	}
}

func TestTwoPlanes(t *testing.T) {
	for name, v := range voyages() {
		t.Run(name, func(t *testing.T) {
			found := byKey(t, v.world)
			entrance := typed[corev1.Service](t, found["Service/"+names.GatewayService])
			require.Equal(t, v.active, entrance.Spec.Selector[names.PlaneLabel], "clients are led to the store")
			for id, role := range v.rolesOf {
				for _, kind := range []string{"StatefulSet/", "Secret/"} {
					object := found[kind+names.GarageObject(id)]
					require.Equal(t, role, object.GetAnnotations()["system-s3.deckhouse.io/role"], kind+id)
				}
			}
			for _, id := range []string{"a", "b"} {
				for _, kind := range []string{"Service/", "NetworkPolicy/", "PodDisruptionBudget/"} {
					require.Contains(t, found, kind+names.GarageObject(id), "its Pods run")
				}
				own := typed[corev1.Service](t, found["Service/"+names.PlaneGatewayService(id)])
				require.Equal(t, map[string]string{"app": "garage", names.PlaneLabel: id}, own.Spec.Selector)
				require.Equal(t, entrance.Spec.Ports, own.Spec.Ports)
				require.False(t, own.Spec.PublishNotReadyAddresses, "only who serves is asked")
				require.Empty(t, own.Spec.ClusterIP, "one address, which outlives the Pods")
			}
			if v.retiring != "" {
				for _, kind := range []string{"StatefulSet/", "Secret/", "ConfigMap/"} {
					require.NotContains(t, found, kind+names.GarageObject(v.retiring), "the controller deletes it")
				}
			}
		})
	}
}

// Between two planes of one tier every node may carry a replica of each.
func TestPlanesDoNotKeepEachOtherAway(t *testing.T) {
	found := byKey(t, voyages()["copying"].world)
	for _, id := range []string{"a", "b"} {
		set := typed[appsv1.StatefulSet](t, found["StatefulSet/"+names.GarageObject(id)])
		anti := set.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		require.Len(t, anti, 1)
		require.Equal(t, set.Spec.Selector.MatchLabels, anti[0].LabelSelector.MatchLabels)
		require.Equal(t, id, set.Spec.Selector.MatchLabels[names.PlaneLabel])
	}
}

// The gateways of one plane forward to those of the other, and the controller asks both; Garages do not meet.
func TestPlanesMeetAtTheirGatewaysOnly(t *testing.T) {
	found := byKey(t, voyages()["switched"].world)
	for _, id := range []string{"a", "b"} {
		policy := typed[networkingv1.NetworkPolicy](t, found["NetworkPolicy/"+names.GarageObject(id)])
		require.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, policy.Spec.PolicyTypes, "who may be asked is not restricted")
		open := map[string]bool{}
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				open[port.Port.StrVal] = len(rule.From) == 0
				if port.Port.StrVal == "rpc" {
					require.Equal(t, id, rule.From[0].PodSelector.MatchLabels[names.PlaneLabel])
				}
			}
		}
		require.Equal(t, map[string]bool{"rpc": false, "https-s3": true, "https-admin": true, "https-metrics": false}, open)
	}
}

// What the controller may delete of a plane is named, and is never the store.
func TestControllerDeletesNoStore(t *testing.T) {
	all := voyages()
	for name, w := range worlds() {
		if _, there := all[name]; !there && len(w.cluster.Planes) < 2 {
			all[name] = voyage{world: w}
		}
	}
	for name, v := range all {
		t.Run(name, func(t *testing.T) {
			role := typed[rbacv1.Role](t, byKey(t, v.world)["Role/controller"])
			deletable := map[string][]string{}
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					if slices.Contains(rule.Verbs, "delete") {
						deletable[resource] = rule.ResourceNames
					}
				}
			}
			wanted := map[string][]string{"pods": nil, "persistentvolumeclaims": nil, "endpointslices": nil}
			if v.passing != "" {
				for _, resource := range []string{"statefulsets", "secrets", "configmaps"} {
					wanted[resource] = []string{names.GarageObject(v.passing)}
				}
			}
			require.Equal(t, wanted, deletable)
		})
	}
}
