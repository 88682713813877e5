package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

const plane = "a"

func (s *story) becomesReady(t *testing.T) {
	require.NoError(t, site.Namespace(t.Context(), namespace))
	require.NoError(t, site.Bucket(t.Context(), mainKey(), "1Gi"))
	require.NoError(t, site.AwaitBucket(t.Context(), mainKey(), storeLimit))
	require.NoError(t, site.AwaitCondition(t.Context(), moduleLimit, storageReady, plan.ReasonReady))
}

// replicas of Garage that run, by the node of each.
func replicas(ctx context.Context) (map[string]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := site.Admin.List(ctx, pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.GarageApp})
	if err != nil {
		return nil, fmt.Errorf("list replicas: %w", err)
	}
	byNode := map[string]corev1.Pod{}
	for _, pod := range pods.Items {
		if ready(&pod) {
			byNode[pod.Spec.NodeName] = pod
		}
	}
	return byNode, nil
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp.IsZero()
		}
	}
	return false
}

// health is Garage's answer to GetClusterHealth.
type health struct {
	Status           string `json:"status"`
	ConnectedNodes   int    `json:"connectedNodes"`
	StorageNodes     int    `json:"storageNodes"`
	StorageNodesUp   int    `json:"storageNodesUp"`
	Partitions       int    `json:"partitions"`
	PartitionsAllOK  int    `json:"partitionsAllOk"`
	PartitionsQuorum int    `json:"partitionsQuorum"`
}

// askHealth asks a replica itself, as the controller does.
func askHealth(ctx context.Context, pod corev1.Pod) (health, error) {
	secrets := map[string]*corev1.Secret{names.GarageObject(plane): {}, names.TLSSecret: {}}
	for name, secret := range secrets {
		if err := site.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: name}, secret); err != nil {
			return health{}, fmt.Errorf("read Secret %s: %w", name, err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(secrets[names.TLSSecret].Data[names.CAKey])
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: pool, MinVersion: tls.VersionTLS12, ServerName: names.GatewayService + "." + names.Namespace + ".svc",
	}}
	defer transport.CloseIdleConnections()
	address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(names.GatewayAdminPort))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/v2/GetClusterHealth", nil)
	if err != nil {
		return health{}, fmt.Errorf("ask for health: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+string(secrets[names.GarageObject(plane)].Data[names.AdminTokenKey]))
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return health{}, fmt.Errorf("ask for health: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return health{}, fmt.Errorf("ask for health: %s", response.Status)
	}
	var answer health
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return health{}, fmt.Errorf("read health: %w", err)
	}
	return answer, nil
}

// awaitHealth waits until every replica runs on a node of its own and says that all is well.
func awaitHealth(ctx context.Context) error {
	return site.Await(ctx, stage.Wish{What: "a healthy store", Limit: storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		byNode, err := replicas(ctx)
		if err != nil || len(byNode) != wantedReplicas() {
			return false, fmt.Sprintf("%d of %d replicas are ready", len(byNode), wantedReplicas()), err
		}
		for _, node := range slices.Sorted(maps.Keys(byNode)) {
			answer, err := askHealth(ctx, byNode[node])
			if err != nil {
				return false, "", err
			}
			well := answer.Status == "healthy" && answer.StorageNodes == wantedReplicas() &&
				answer.StorageNodesUp == wantedReplicas() && answer.PartitionsAllOK == answer.Partitions && answer.Partitions > 0
			if !well {
				return false, fmt.Sprintf("%s sees %+v", byNode[node].Name, answer), nil
			}
		}
		return true, fmt.Sprintf("%d replicas on %d nodes are healthy", len(byNode), len(byNode)), nil
	}})
}

func (*story) isHealthy(t *testing.T) {
	require.NoError(t, awaitHealth(t.Context()))
	config := &corev1.ConfigMap{}
	require.NoError(t, site.Admin.Get(t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: names.GarageObject(plane)}, config))
	require.Contains(t, config.Data["garage.toml"], fmt.Sprintf("replication_factor = %d\n", wantedReplicas()))
}
