package chart

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const keepPolicy = "helm.sh/resource-policy"

// key names an object; the namespace only where it is not the module's own, and Helm's hooks, which are twins.
func key(o unstructured.Unstructured) string {
	name := o.GetKind() + "/" + o.GetName()
	if o.GetNamespace() == platformNamespace {
		name = o.GetKind() + "/" + platformNamespace + "/" + o.GetName()
	}
	if o.GetAnnotations()[hookAnnotation] != "" {
		name = "Hook" + name
	}
	return name
}

func byKey(t *testing.T, w world) map[string]unstructured.Unstructured {
	t.Helper()
	found := map[string]unstructured.Unstructured{}
	for _, o := range objects(t, w) {
		require.NotContains(t, found, key(o), "printed twice")
		found[key(o)] = o
	}
	return found
}

func typed[T any](t *testing.T, o unstructured.Unstructured) T {
	t.Helper()
	require.NotNil(t, o.Object, "not printed")
	var into T
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &into, true))
	return into
}

func clusterScoped(kind string) bool {
	switch kind {
	case "Namespace", "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"GrafanaDashboardDefinition", "ClusterObservabilityMetricsRulesGroup", "ClusterObservabilityDashboard":
		return true
	default:
		return false
	}
}

func TestEveryObjectCarriesTheLabels(t *testing.T) {
	all := worlds()
	all["monitored"] = masters(3).bucket(10).monitored()
	all["observed"] = masters(3).bucket(10).observed()
	for name, w := range all {
		t.Run(name, func(t *testing.T) {
			for _, o := range objects(t, w) {
				require.Equal(t, "deckhouse", o.GetLabels()["heritage"], key(o))
				require.Equal(t, "system-s3", o.GetLabels()["module"], key(o))
				switch {
				case clusterScoped(o.GetKind()), o.GetAnnotations()[hookAnnotation] != "":
					require.Empty(t, o.GetNamespace(), key(o))
				case o.GetName() == "system-s3-ca" || o.GetName() == "system-s3-controller":
					require.Equal(t, monitoringNamespace, o.GetNamespace(), key(o))
				case o.GetLabels()["app"] == leaver && o.GetName() == leaver:
					require.Equal(t, platformNamespace, o.GetNamespace(), key(o))
				default:
					require.Equal(t, "d8-system-s3", o.GetNamespace(), key(o))
				}
			}
		})
	}
}

// What the volumes cannot be put together without is kept when the module is disabled, also when no hook runs.
func TestWhatMakesTheStoreIsKept(t *testing.T) {
	kept := map[string]bool{
		"Namespace/d8-system-s3": true, "StatefulSet/garage-a": true, "Secret/garage-a": true, "ConfigMap/garage-a": true,
		"Secret/key-ring": true, "Secret/tls": true, "Secret/ca": true,
		"ServiceAccount/d8-system/system-s3-leave": true, "Secret/d8-system/system-s3-leave": true,
		"Role/d8-system/system-s3-leave": true, "RoleBinding/d8-system/system-s3-leave": true,
		"Role/leave": true, "RoleBinding/leave": true, "ClusterRole/d8:system-s3:leave": true, "ClusterRoleBinding/d8:system-s3:leave": true,
	}
	found := byKey(t, masters(3).bucket(10).autoscaler())
	for name := range kept {
		require.Contains(t, found, name)
	}
	for name, o := range found {
		require.Equal(t, kept[name], o.GetAnnotations()[keepPolicy] == "keep", name)
	}
}

func TestNothingOfGarageBeforeTheFirstBucket(t *testing.T) {
	for name := range byKey(t, masters(3)) {
		require.NotContains(t, name, "/garage", name)
	}
	require.Contains(t, byKey(t, masters(3)), "Service/s3-gateway", "clients' names exist from the beginning")
}

func TestFrozenPlaneIsLeftAlone(t *testing.T) {
	found := byKey(t, masters(3).bucket(10).frozen())
	for _, name := range []string{"StatefulSet/garage-a", "Secret/garage-a", "ConfigMap/garage-a"} {
		require.NotContains(t, found, name, "kept as it is in the cluster")
	}
	for _, name := range []string{"Service/garage-a", "PodDisruptionBudget/garage-a", "NetworkPolicy/garage-a", "ServiceAccount/garage"} {
		require.Contains(t, found, name, "its running Pods need it, and nothing keeps it")
	}
}

func TestGarageStatefulSet(t *testing.T) {
	for name, w := range map[string]world{"one": masters(1).bucket(1), "three": masters(3).bucket(10), "system": masters(3).system().bucket(10)} {
		t.Run(name, func(t *testing.T) {
			s := typed[appsv1.StatefulSet](t, byKey(t, w)["StatefulSet/garage-a"])
			require.Equal(t, appsv1.OnDeleteStatefulSetStrategyType, s.Spec.UpdateStrategy.Type, "only the controller restarts replicas")
			require.Equal(t, appsv1.ParallelPodManagement, s.Spec.PodManagementPolicy)
			require.Equal(t, appsv1.RetainPersistentVolumeClaimRetentionPolicyType, s.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted)
			require.Equal(t, appsv1.RetainPersistentVolumeClaimRetentionPolicyType, s.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled)
			pod := s.Spec.Template.Spec
			anti := pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			require.Len(t, anti, 1)
			require.Equal(t, "kubernetes.io/hostname", anti[0].TopologyKey)
			require.Equal(t, s.Spec.Selector.MatchLabels, anti[0].LabelSelector.MatchLabels, "within the plane only")
			for label, value := range s.Spec.Selector.MatchLabels {
				require.Equal(t, value, s.Spec.Template.Labels[label])
			}
			require.False(t, *pod.AutomountServiceAccountToken, "the gateway has no access to Kubernetes")
			require.Equal(t, int64(60), *pod.TerminationGracePeriodSeconds)
			require.Equal(t, []string{"prepare", "garage", "gateway"}, containerNames(pod))
			for _, annotation := range []string{"storage-class", "replicas", "replication-factor", "epoch"} {
				require.NotEmpty(t, s.Annotations["system-s3.deckhouse.io/"+annotation], "read back by the hooks")
			}
		})
	}
}

func containerNames(pod corev1.PodSpec) []string {
	var found []string
	for _, c := range append(append([]corev1.Container{}, pod.InitContainers...), pod.Containers...) {
		found = append(found, c.Name)
	}
	return found
}

// podsOf are the Pods that the chart makes, by the object that makes them.
func podsOf(t *testing.T, w world) map[string]corev1.PodSpec {
	t.Helper()
	found := byKey(t, w)
	return map[string]corev1.PodSpec{
		"garage":     typed[appsv1.StatefulSet](t, found["StatefulSet/garage-a"]).Spec.Template.Spec,
		"controller": typed[appsv1.Deployment](t, found["Deployment/controller"]).Spec.Template.Spec,
		"leaver":     typed[appsv1.Deployment](t, found["HookDeployment/system-s3-leave"]).Spec.Template.Spec,
	}
}

func TestPodsAreRestricted(t *testing.T) {
	for name, pod := range podsOf(t, masters(3).bucket(10)) {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, int64(64535), *pod.SecurityContext.RunAsUser)
			require.Equal(t, int64(64535), *pod.SecurityContext.FSGroup)
			for _, c := range append(append([]corev1.Container{}, pod.InitContainers...), pod.Containers...) {
				require.True(t, *c.SecurityContext.RunAsNonRoot, c.Name)
				require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, c.Name)
				require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, c.Name)
				require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, c.Name)
				require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, c.SecurityContext.SeccompProfile.Type, c.Name)
				require.Empty(t, c.Resources.Limits, "C8: no limits")
				require.Contains(t, c.Image, "@sha256:", "pulled by digest")
				for _, variable := range c.Env {
					require.NotContains(t, strings.ToLower(variable.Name), "secret")
				}
			}
			for _, v := range pod.Volumes {
				if v.Secret != nil {
					require.Equal(t, int32(0o440), *v.Secret.DefaultMode, v.Name)
				}
			}
		})
	}
}

func TestGarageRequests(t *testing.T) {
	pod := podsOf(t, masters(3).bucket(10))["garage"]
	for _, c := range pod.Containers {
		cpu, memory := map[string]string{"garage": "100m", "gateway": "20m"}[c.Name], map[string]string{"garage": "256Mi", "gateway": "32Mi"}[c.Name]
		require.Equal(t, cpu, c.Resources.Requests.Cpu().String(), "C8")
		require.Equal(t, memory, c.Resources.Requests.Memory().String(), "C8")
	}
}

// A Service, a policy or a probe that names a port which no container has would fail in silence.
func TestNamedPortsExist(t *testing.T) {
	w := masters(3).bucket(10)
	pods := podsOf(t, w)
	known := map[string]bool{}
	for _, pod := range pods {
		for _, c := range pod.Containers {
			for _, p := range c.Ports {
				known[p.Name] = true
			}
			for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
				if probe != nil && probe.HTTPGet.Port.Type == intstr.String {
					require.Contains(t, portNames(c), probe.HTTPGet.Port.StrVal)
				}
			}
		}
	}
	for name, o := range byKey(t, w) {
		if o.GetKind() == "Service" {
			for _, p := range typed[corev1.Service](t, o).Spec.Ports {
				require.True(t, known[p.TargetPort.StrVal], "%s: %s", name, p.TargetPort.StrVal)
			}
		}
	}
}

func portNames(c corev1.Container) []string {
	var found []string
	for _, p := range c.Ports {
		found = append(found, p.Name)
	}
	return found
}

func TestControllerFollowsTheControlPlane(t *testing.T) {
	for masterCount, replicas := range map[int]int32{1: 1, 2: 2, 3: 3, 5: 3} {
		d := typed[appsv1.Deployment](t, byKey(t, masters(masterCount))["Deployment/controller"])
		require.Equal(t, replicas, *d.Spec.Replicas, "F8: %d masters", masterCount)
		require.Equal(t, masterCount > 1, d.Spec.Template.Spec.Affinity.PodAntiAffinity != nil)
	}
}

func TestAutoscalerNeedsModuleAndAPI(t *testing.T) {
	withAll := masters(3).bucket(10).autoscaler()
	require.Contains(t, byKey(t, withAll), "VerticalPodAutoscaler/garage-a")
	withoutAPI, withoutModule := withAll, withAll
	withoutAPI.apis, withoutModule.modules = nil, nil
	require.NotContains(t, byKey(t, withoutAPI), "VerticalPodAutoscaler/garage-a")
	require.NotContains(t, byKey(t, withoutModule), "VerticalPodAutoscaler/garage-a")
}

func TestChartRefusesToGuess(t *testing.T) {
	cases := map[string]struct {
		reason string
		remove []string
		says   string
	}{
		"no plan":       {reason: "a default would take the store away", remove: []string{"systemS3", "internal", "plan"}, says: "internal.plan is absent"},
		"no secrets":    {reason: "Garage would start as somebody else", remove: []string{"systemS3", "internal", "planes", "a"}, says: "planes.a is absent"},
		"no key ring":   {reason: "gateways would refuse everything", remove: []string{"systemS3", "internal", "keyRing"}, says: "keyRing is absent"},
		"no CA":         {reason: "clients would trust nobody", remove: []string{"systemS3", "internal", "tls", "ca"}, says: "tls.ca is absent"},
		"no key of CA":  {reason: "a new CA would follow", remove: []string{"systemS3", "internal", "tls", "caKey"}, says: "tls.caKey is absent"},
		"no digest":     {reason: "nothing is pulled by a tag", remove: []string{"global", "modulesImages", "digests", "systemS3", "garage"}, says: "digest of image garage"},
		"no DNS domain": {reason: "replicas would not find each other", remove: []string{"global", "discovery", "clusterDomain"}, says: "clusterDomain is absent"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			values := masters(3).bucket(10).values(t)
			unstructured.RemoveNestedField(values, c.remove...)
			_, err := Render(root, values)
			require.ErrorContains(t, err, c.says, c.reason)
		})
	}
}

func TestImagesOfAModuleSource(t *testing.T) {
	values := masters(3).bucket(10).values(t)
	require.NoError(t, unstructured.SetNestedField(values, "registry.test/source", "systemS3", "registry", "base"))
	files, err := Render(root, values)
	require.NoError(t, err)
	require.Contains(t, files["controller/deployment.yaml"], "image: registry.test/source/system-s3@sha256:c0")
}

// The release is kept in one Secret of at most 1 MiB; sources and hooks must stay outside.
func TestReleaseIsSmall(t *testing.T) {
	c, err := loader.Load(root)
	require.NoError(t, err)
	size := 0
	for _, f := range c.Raw {
		size += len(f.Data)
	}
	require.Less(t, size, 512<<10)
	for _, f := range c.Files {
		require.True(t, strings.HasPrefix(f.Name, "monitoring/"), "%s is not part of the chart: add it to .helmignore", f.Name)
	}
}
