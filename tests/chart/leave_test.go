package chart

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	hookAnnotation    = "helm.sh/hook"
	weight            = "werf.io/weight"
	platformNamespace = "d8-system"
	leaver            = "system-s3-leave"
)

// While the module is enabled the leaver sleeps; when it is disabled, also while the platform is down, Helm starts it.
func TestLeaverSleepsUntilTheModuleIsDisabled(t *testing.T) {
	found := byKey(t, masters(3))
	asleep := typed[appsv1.Deployment](t, found["Deployment/d8-system/system-s3-leave"])
	awake := typed[appsv1.Deployment](t, found["HookDeployment/system-s3-leave"])
	require.Equal(t, int32(0), *asleep.Spec.Replicas)
	require.Equal(t, int32(1), *awake.Spec.Replicas)
	require.Equal(t, asleep.Spec.Template, awake.Spec.Template)
	require.Equal(t, asleep.Labels, awake.Labels, "the platform counts a hook's object without the label as missing")
	require.Equal(t, map[string]string{hookAnnotation: "post-delete", "helm.sh/hook-delete-policy": "before-hook-creation"}, awake.Annotations)
	require.NotContains(t, asleep.Annotations, keepPolicy, "it makes room for the one that works")
}

// The marker comes before everything that the leaver would take away again, and with it all that it needs itself: lower
// weights than those of their needs would make a circle.
func TestMarkerComesFirst(t *testing.T) {
	set := map[string]bool{
		"Namespace/d8-system-s3": true, "ConfigMap/plan": true, "Deployment/d8-system/system-s3-leave": true,
		"ServiceAccount/d8-system/system-s3-leave": true, "Secret/d8-system/system-s3-leave": true,
		"Role/d8-system/system-s3-leave": true, "RoleBinding/d8-system/system-s3-leave": true,
		"Role/leave": true, "RoleBinding/leave": true, "ClusterRole/d8:system-s3:leave": true, "ClusterRoleBinding/d8:system-s3:leave": true,
	}
	for _, w := range []world{masters(3), masters(3).bucket(10).autoscaler()} {
		found := byKey(t, w)
		for name := range set {
			require.Contains(t, found, name)
		}
		for name, o := range found {
			require.Equal(t, set[name], o.GetAnnotations()[weight] == "-10", name)
		}
	}
}

func TestAccessOfAdministrators(t *testing.T) {
	const current, former = "d8:system-capability:system-s3:", "d8:manage:permission:module:system-s3:"
	cases := map[string]struct {
		reason, version, prefix string
	}{
		"now":              {reason: "A6", version: "v1.78.0", prefix: current},
		"later":            {reason: "A6", version: "v1.100.2", prefix: current},
		"major":            {reason: "A6", version: "v2.0.0", prefix: current},
		"before":           {reason: "A6", version: "v1.77.9", prefix: former},
		"without v":        {reason: "written both ways", version: "1.77.0", prefix: former},
		"candidate":        {reason: "a candidate of 1.78 is 1.78", version: "v1.78.0-rc.1", prefix: current},
		"candidate before": {reason: "a candidate of 1.77 is 1.77", version: "v1.77.0-rc.1+2", prefix: former},
		"developer":        {reason: "a build without a version is the newest", version: "dev", prefix: current},
		"unknown":          {reason: "a build without a version is the newest", version: "", prefix: current},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			found := byKey(t, masters(3).on(c.version))
			for action, level := range map[string]string{"view": "viewer", "edit": "manager"} {
				role := typed[rbacv1.ClusterRole](t, found["ClusterRole/"+c.prefix+action])
				require.Equal(t, level, role.Labels["rbac.deckhouse.io/aggregate-to-storage-as"], c.reason)
				require.Equal(t, c.prefix == former, role.Labels["rbac.deckhouse.io/level"] == "module", c.reason)
				require.Equal(t, c.prefix == current, role.Labels["rbac.deckhouse.io/scope"] == "system", c.reason)
				require.Equal(t, c.prefix == current, role.Annotations["ru.meta.deckhouse.io/title"] != "", c.reason)
				for _, rule := range role.Rules {
					require.NotContains(t, rule.Resources, "systembuckets/read", "B2: whoever manages buckets does not see objects")
					require.NotContains(t, rule.Resources, "systembuckets/write", "B2: whoever manages buckets does not see objects")
				}
			}
			for name := range found {
				other := map[string]string{current: former, former: current}[c.prefix]
				require.NotContains(t, name, other, "one form at a time")
			}
		})
	}
}

// Nobody is given a SystemBucket by the roles of users: neither those of Kubernetes nor those of the platform.
func TestUsersGetNoRights(t *testing.T) {
	for name, o := range byKey(t, masters(3).bucket(10)) {
		for label := range o.GetLabels() {
			require.NotContains(t, label, "rbac.authorization.k8s.io/aggregate-to", name)
			require.NotContains(t, label, "aggregate-to-kubernetes", name)
		}
		require.NotContains(t, o.GetAnnotations(), "user-authz.deckhouse.io/access-level", name)
	}
}
