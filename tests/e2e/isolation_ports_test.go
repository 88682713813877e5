package e2e

import (
	_ "embed"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/consumer"
)

//go:embed prowler.py
var prowler string

// tryPorts knocks at every port from a Pod of another namespace. The sandbox's network enforces no NetworkPolicy, so what
// is proved is that each port keeps strangers out by itself; that the policies are there and say the same is looked up.
func (s *story) tryPorts(t *testing.T, y *tally) {
	ctx := t.Context()
	byNode, err := replicas(ctx)
	require.NoError(t, err)
	require.Len(t, byNode, wantedReplicas())
	script := "python3 - <<'END'\nimport sys\nsys.argv[1:] = '"
	for _, pod := range byNode {
		script += pod.Status.PodIP + " "
	}
	script = strings.TrimSuffix(script, " ") + "'.split()\n" + prowler + "END"
	log := run(t, consumer.Consumer{Name: "prowler", Namespace: foreign, Bucket: mainBucket, Image: s.push(t).cli, Args: []string{script}})
	for line := range strings.Lines(log) {
		verdict, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		status := http.StatusForbidden
		if verdict != "refused" {
			status = http.StatusOK
		}
		y.note(what, status, "", nil)
	}
	require.GreaterOrEqual(t, strings.Count(log, "refused "), len(byNode)*50, "the Pod has tried everything:\n%s", log)
	s.hasPolicies(t)
}

// hasPolicies looks at what a network that enforces policies would do: of Garage's own ports only RPC is open, and that
// to the replicas of the same plane only.
func (*story) hasPolicies(t *testing.T) {
	t.Helper()
	policy := &networkingv1.NetworkPolicy{}
	require.NoError(t, site.Admin.Get(t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: names.GarageObject(plane)}, policy))
	require.Equal(t, names.GarageApp, policy.Spec.PodSelector.MatchLabels[names.AppLabel])
	require.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, policy.Spec.PolicyTypes)
	open := map[string][]networkingv1.NetworkPolicyPeer{}
	for _, rule := range policy.Spec.Ingress {
		require.NotEmpty(t, rule.Ports, "a rule without ports opens all of them")
		for _, port := range rule.Ports {
			open[port.Port.String()] = rule.From
		}
	}
	require.Len(t, open, 4, "RPC and the gateway's three ports")
	require.Contains(t, open, names.ServingS3PortName)
	require.Contains(t, open, names.ServingAdminPortName)
	require.Len(t, open["https-metrics"], 1, "for Prometheus only")
	require.Equal(t, map[string]string{"kubernetes.io/metadata.name": "d8-monitoring"}, open["https-metrics"][0].NamespaceSelector.MatchLabels)
	require.Len(t, open["rpc"], 1)
	peers := open["rpc"][0]
	require.Nil(t, peers.NamespaceSelector)
	require.Nil(t, peers.IPBlock)
	require.Equal(t, policy.Spec.PodSelector, *peers.PodSelector)
}
