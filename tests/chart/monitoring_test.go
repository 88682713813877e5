package chart

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const monitoringNamespace = "d8-monitoring"

func (w world) monitored() world {
	w.modules = append(append([]string{}, w.modules...), "operator-prometheus", "prometheus")
	return w
}

// observed is a platform that keeps rules and dashboards in objects of its own.
func (w world) observed() world {
	w = w.monitored()
	w.modules = append(w.modules, "observability")
	w.apis = append(append([]string{}, w.apis...), "observability.deckhouse.io/v1alpha1/ClusterObservabilityMetricsRulesGroup",
		"observability.deckhouse.io/v1alpha1/ClusterObservabilityDashboard")
	return w
}

func kinds(t *testing.T, w world) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, o := range objects(t, w) {
		found[o.GetKind()]++
	}
	return found
}

func TestMonitoringNeedsItsModules(t *testing.T) {
	bare, monitored, observed := kinds(t, masters(3).bucket(10)), kinds(t, masters(3).bucket(10).monitored()), kinds(t, masters(3).bucket(10).observed())
	for _, kind := range []string{"PodMonitor", "PrometheusRule", "GrafanaDashboardDefinition"} {
		require.Zero(t, bare[kind], "%s would be refused by an apiserver that does not know it", kind)
		require.Positive(t, monitored[kind], kind)
	}
	require.Zero(t, observed["PrometheusRule"], "an alert would come twice")
	require.Equal(t, 3, observed["ClusterObservabilityMetricsRulesGroup"])
	require.Equal(t, monitored["GrafanaDashboardDefinition"], observed["ClusterObservabilityDashboard"])
	require.Equal(t, 1, kinds(t, masters(3).monitored())["PodMonitor"], "no gateway before the first bucket")
}

func field(t *testing.T, o unstructured.Unstructured, path ...string) string {
	t.Helper()
	value, found, err := unstructured.NestedString(o.Object, path...)
	require.NoError(t, err)
	require.True(t, found, strings.Join(path, "."))
	return value
}

// endpoint is the one endpoint of a PodMonitor.
func endpoint(t *testing.T, o unstructured.Unstructured) unstructured.Unstructured {
	t.Helper()
	endpoints, _, err := unstructured.NestedSlice(o.Object, "spec", "podMetricsEndpoints")
	require.NoError(t, err)
	require.Len(t, endpoints, 1)
	return unstructured.Unstructured{Object: endpoints[0].(map[string]any)}
}

// A token is shown only to a server that proves to be ours, and opens nothing but the metrics.
func TestScrapesAreAuthorizedAndVerified(t *testing.T) {
	found := byKey(t, masters(3).bucket(10).monitored())
	controller, gateway := endpoint(t, found["PodMonitor/system-s3-controller"]), endpoint(t, found["PodMonitor/garage-a"])
	for _, e := range []unstructured.Unstructured{controller, gateway} {
		require.Equal(t, "https", field(t, e, "scheme"))
		require.Equal(t, "https-metrics", field(t, e, "port"))
		_, insecure, _ := unstructured.NestedBool(e.Object, "tlsConfig", "insecureSkipVerify")
		require.False(t, insecure)
	}
	require.Equal(t, "sts.d8-system-s3.svc", field(t, controller, "tlsConfig", "serverName"))
	require.Equal(t, "prometheus-token", field(t, controller, "bearerTokenSecret", "name"))
	require.Equal(t, "CA", field(t, found["ConfigMap/system-s3-ca"], "data", "ca.crt"))
	require.Equal(t, "s3.d8-system-s3.svc", field(t, gateway, "tlsConfig", "serverName"))
	require.Equal(t, "garage-a-metrics", field(t, gateway, "authorization", "credentials", "name"))
	secret := typed[corev1.Secret](t, found["Secret/garage-a-metrics"])
	require.Equal(t, strings.Repeat("3", 64), string(secret.Data["token"]), "the metrics token, not the admin's")
	require.Len(t, secret.Data, 2, "nothing else of the store's secrets")
	role := typed[rbacv1.Role](t, found["Role/access-to-system-s3"])
	require.Equal(t, []rbacv1.PolicyRule{{
		APIGroups: []string{"apps"}, Resources: []string{"deployments/prometheus-metrics"}, ResourceNames: []string{"controller"}, Verbs: []string{"get"},
	}}, role.Rules)
}

// The metrics port is for Prometheus only, and it is the only port that the rule opens.
func TestOnlyMonitoringReachesTheMetrics(t *testing.T) {
	found := byKey(t, masters(3).bucket(10))
	for _, name := range []string{"NetworkPolicy/controller", "NetworkPolicy/garage-a"} {
		rules := 0
		for _, rule := range typed[networkingv1.NetworkPolicy](t, found[name]).Spec.Ingress {
			for _, port := range rule.Ports {
				if port.Port.StrVal != "https-metrics" {
					continue
				}
				rules++
				require.Len(t, rule.Ports, 1, name)
				require.Len(t, rule.From, 1, name)
				require.Equal(t, map[string]string{"kubernetes.io/metadata.name": monitoringNamespace}, rule.From[0].NamespaceSelector.MatchLabels, name)
			}
		}
		require.Equal(t, 1, rules, name)
	}
	for name, pod := range podsOf(t, masters(3).bucket(10)) {
		if name != "leaver" {
			require.Contains(t, portNames(pod.Containers[len(pod.Containers)-1]), "https-metrics", name)
		}
	}
}

func TestDashboardsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range objects(t, masters(3).bucket(10).observed()) {
		switch o.GetKind() {
		case "GrafanaDashboardDefinition", "ClusterObservabilityDashboard":
			var dashboard struct {
				UID   string `json:"uid"`
				Title string `json:"title"`
			}
			require.NoError(t, json.Unmarshal([]byte(field(t, o, "spec", "definition")), &dashboard), o.GetName())
			require.NotEmpty(t, dashboard.Title)
			require.NotEmpty(t, dashboard.UID)
			require.False(t, seen[o.GetKind()+dashboard.UID], "two dashboards with one uid overwrite each other")
			seen[o.GetKind()+dashboard.UID] = true
			if o.GetKind() == "GrafanaDashboardDefinition" {
				require.NotEmpty(t, field(t, o, "spec", "folder"))
			} else {
				require.Equal(t, dashboard.Title, o.GetAnnotations()["metadata.deckhouse.io/title"])
			}
		}
	}
}

// The scrapes go on while the chart leaves a plane alone whose secrets it does not know.
func TestAPlaneWithoutKnownSecretsIsNotScraped(t *testing.T) {
	values := masters(3).bucket(10).frozen().monitored().values(t)
	unstructured.RemoveNestedField(values, "systemS3", "internal", "planes", "a")
	files, err := Render(root, values)
	require.NoError(t, err)
	require.NotContains(t, files["monitoring/pod-monitors.yaml"], "name: garage-a")
	require.Contains(t, files["monitoring/pod-monitors.yaml"], "name: system-s3-controller")
}
