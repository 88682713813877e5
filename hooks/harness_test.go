package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/deckhouse/module-sdk/pkg"
	"github.com/deckhouse/module-sdk/testing/framework"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/plan"
)

// globals are what the platform's discovery says of a cluster with three masters.
const globals = `
global:
  discovery:
    clusterDomain: cluster.test
    clusterControlPlaneIsHighlyAvailable: true
  modules: {}
systemS3:
  internal: {}
`

// running is a hook on the harness: the module's schemas give the defaults and judge the result.
type running struct {
	*framework.HookExecutionConfig
	t *testing.T
}

func onHarness(t *testing.T, config *pkg.HookConfig, body handler) running {
	t.Helper()
	f := framework.NewHookExecutionConfig(t, config, guarded(body),
		framework.WithOpenAPIDir("../openapi"),
		framework.WithInitialValues(globals),
		framework.WithCRD("storage.deckhouse.io", "v1alpha1", "SystemBucket", true),
	)
	return running{HookExecutionConfig: f, t: t}
}

// run runs the hook, which must succeed and leave values that the schema accepts.
func (r running) run() {
	r.t.Helper()
	r.RunHook()
	require.NoError(r.t, r.HookError())
	require.NoError(r.t, valuesSchema(r.t).check([]byte(r.ValuesGet("systemS3").Raw)))
}

// plan is the plan in the values.
func (r running) plan() plan.Plan {
	r.t.Helper()
	var p plan.Plan
	require.NoError(r.t, json.Unmarshal([]byte(r.ValuesGet(planPath).Raw), &p))
	return p
}

// operations are the patches of the last run, each as "Type Kind/name".
func (r running) operations() []string {
	found := []string{}
	for _, o := range r.PatchedOperations() {
		found = append(found, fmt.Sprintf("%s %s/%s", o.Type, o.Kind, o.Name))
	}
	return found
}

// The objects of the tests, in YAML as the harness takes them.

func state(objects ...string) string { return strings.Join(objects, "\n---\n") }

func node(name string, labels ...string) string {
	lines := ""
	for _, l := range labels {
		lines += fmt.Sprintf("\n    %s: \"\"", l)
	}
	return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata:\n  name: %s\n  labels:\n    kubernetes.io/hostname: %s%s", name, name, lines)
}

func threeMasters() string {
	return state(node("m-0", plan.MasterNodeLabel), node("m-1", plan.MasterNodeLabel), node("m-2", plan.MasterNodeLabel))
}

func defaultClass() string {
	return `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: local
  creationTimestamp: "2026-01-01T00:00:00Z"
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: test
volumeBindingMode: WaitForFirstConsumer
allowVolumeExpansion: true`
}

func bucket(name, size string) string {
	return fmt.Sprintf(`
apiVersion: storage.deckhouse.io/v1alpha1
kind: SystemBucket
metadata: {name: %s, namespace: d8-test}
spec: {size: %s}`, name, size)
}

func factsOf(replicas int) string {
	return fmt.Sprintf(`{%s: local, %s: "%d", %s: "%d", %s: "1"}`, classFact, replicasFact, replicas, factorFact, replicas, epochFact)
}

func statefulSet(size, annotations string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: garage-a
  namespace: d8-system-s3
  labels: {system-s3.deckhouse.io/plane: a}
  annotations: %s
spec:
  replicas: 0
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: local, resources: {requests: {storage: %s}}}`, annotations, size)
}

func claim(ordinal int, size, phase string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data-garage-a-%d
  namespace: d8-system-s3
  labels: {system-s3.deckhouse.io/plane: a}
spec: {storageClassName: local, resources: {requests: {storage: %s}}}
status: {phase: %s, capacity: {storage: %s}}`, ordinal, size, phase, size)
}

// resizing is a claim that asks for more than it has, with what its status says besides.
func resizing(ordinal int, has, asks, status string) string {
	c := strings.Replace(claim(ordinal, has, "Bound"), "requests: {storage: "+has+"}", "requests: {storage: "+asks+"}", 1)
	return strings.Replace(c, "status: {", "status: {"+status, 1)
}

// stateMap is what the controller tells of three replicas that answer; full are the ordinals of those that are full at
// the size.
func stateMap(t *testing.T, size int64, full ...int) string {
	t.Helper()
	p := plan.PlaneState{ID: plan.FirstPlane}
	for n := range 3 {
		p.Replicas = append(p.Replicas, plan.ReplicaState{Ordinal: n, Up: true, Full: slices.Contains(full, n), ClaimBytes: size << 30})
	}
	encoded, err := json.Marshal(plan.State{Planes: []plan.PlaneState{p}})
	require.NoError(t, err)
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: data-plane, namespace: d8-system-s3}\ndata:\n  state.json: '" + string(encoded) + "'"
}

// planeSecret is Secret garage-a with the secrets, without the keys that are named.
func planeSecret(t *testing.T, v planeValues, without ...string) string {
	t.Helper()
	data := secretData(t, v)
	for _, key := range without {
		delete(data, key)
	}
	encoded, err := json.Marshal(data)
	require.NoError(t, err)
	return fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata:
  name: garage-a
  namespace: d8-system-s3
  labels: {system-s3.deckhouse.io/plane: a}
  annotations: %s
data: %s`, factsOf(3), encoded)
}
