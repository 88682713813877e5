package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/itchyny/gojq"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/plan"
)

// The size of the largest cluster that the hooks are made for.
const (
	manyNodes   = 1000
	manyBuckets = 5000
	manyClasses = 50
)

// filtered is an object as the platform hands it to a hook.
type filtered struct {
	FilterResult any `json:"filterResult"`
}

func largeSnapshots() map[string][]filtered {
	snapshots := map[string][]filtered{statefulSetsSnapshot: {}, secretsSnapshot: {}, claimsSnapshot: {}, stateSnapshot: {}}
	add := func(name string, v any) { snapshots[name] = append(snapshots[name], filtered{v}) }
	for n := range manyNodes {
		labels := []string{}
		if n%10 == 0 {
			labels = append(labels, plan.SystemNodeLabel)
		}
		add(nodesSnapshot, nodeSnapshot{Name: fmt.Sprintf("worker-%04d.example", n), Labels: labels})
	}
	for n := range manyClasses {
		add(classesSnapshot, classSnapshot{
			Name: fmt.Sprintf("class-%02d", n), CreatedAt: fmt.Sprintf("2026-01-01T00:00:%02dZ", n), Default: n%2 == 0, Expandable: true,
		})
	}
	for n := range manyBuckets {
		add(bucketsSnapshot, bucketSnapshot{Namespace: fmt.Sprintf("d8-component-%04d", n%200), Name: fmt.Sprintf("bucket-%04d", n), Size: "10Gi"})
	}
	return snapshots
}

// hookIndex is the number by which the program knows the hook.
func hookIndex(b *testing.B, program, name string) string {
	b.Helper()
	list, err := exec.CommandContext(b.Context(), program, "hook", "list").Output()
	require.NoError(b, err)
	for line := range strings.Lines(string(list)) {
		if index, found := strings.CutSuffix(strings.TrimSpace(line), " - "+name); found {
			return index
		}
	}
	b.Fatalf("there is no hook %s in:\n%s", name, list)
	return ""
}

// BenchmarkPlanHook runs the hook that makes the plan as the platform does: one process, snapshots in a file. It reports
// milliseconds from start to end and MiB of memory at the peak.
func BenchmarkPlanHook(b *testing.B) {
	dir := b.TempDir()
	program := filepath.Join(dir, "hooks")
	out, err := exec.CommandContext(b.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(b, err, string(out))
	index := hookIndex(b, program, "plan")
	write := func(name string, v any) string {
		data, err := json.Marshal(v)
		require.NoError(b, err)
		path := filepath.Join(dir, name)
		require.NoError(b, os.WriteFile(path, data, 0o600))
		return path
	}
	environment := append(os.Environ(), "CREATE_FILES=true",
		"BINDING_CONTEXT_PATH="+write("context.json", []any{map[string]any{"binding": "beforeHelm", "snapshots": largeSnapshots()}}),
		"VALUES_PATH="+write("values.json", map[string]any{
			"global":   map[string]any{"discovery": map[string]any{"clusterControlPlaneIsHighlyAvailable": true}},
			"systemS3": map[string]any{"internal": map[string]any{}},
		}),
		"CONFIG_VALUES_PATH="+write("config.json", map[string]any{}))
	for _, name := range []string{"METRICS_PATH", "KUBERNETES_PATCH_PATH", "VALUES_JSON_PATCH_PATH", "CONFIG_VALUES_JSON_PATCH_PATH", "HOOK_CONFIG_PATH"} {
		environment = append(environment, name+"="+filepath.Join(dir, name))
	}
	var peak int64
	var cpu time.Duration
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), program, "hook", "run", index)
		cmd.Env = environment
		out, err := cmd.CombinedOutput()
		require.NoError(b, err, string(out))
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		require.True(b, ok)
		peak = max(peak, usage.Maxrss)
		cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	patch, err := os.ReadFile(filepath.Join(dir, "VALUES_JSON_PATCH_PATH"))
	require.NoError(b, err)
	require.Contains(b, string(patch), `"volumeSize":"55005Gi"`, "the plan was made from all buckets")
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/run")
	b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/run")
	b.ReportMetric(float64(peak)/1024, "MiB-peak")
}

// The platform runs a hook when what the filter leaves of an object has changed.
func TestNoiseRunsNoHook(t *testing.T) {
	const (
		aNode = `{"metadata":{"name":"n","labels":{"kubernetes.io/hostname":"n","node-role.deckhouse.io/system":""}},"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":"1"}]}}`
		aSet  = `{"metadata":{"name":"garage-a","generation":1,"labels":{"system-s3.deckhouse.io/plane":"a"},"annotations":{"system-s3.deckhouse.io/epoch":"1"}},"spec":{"replicas":3,"volumeClaimTemplates":[{"spec":{"resources":{"requests":{"storage":"10Gi"}}}}]},"status":{"readyReplicas":2}}`
		aPVC  = `{"metadata":{"name":"data-garage-a-0","labels":{"system-s3.deckhouse.io/plane":"a"}},"spec":{"storageClassName":"local","resources":{"requests":{"storage":"10Gi"}}},"status":{"phase":"Bound","capacity":{"storage":"10Gi"}}}`
		aMap  = `{"data":{"state.json":"{\"planes\":[{\"id\":\"a\",\"healthy\":true,\"replicas\":[{\"ordinal\":0,\"up\":true,\"ready\":true,\"volumeBytes\":1000,\"volumeFree\":900,\"full\":false,\"claimBytes\":1100}]}]}"}}`
		aMove = `{"data":{"state.json":"{\"planes\":[],\"migration\":{\"source\":\"a\",\"target\":\"b\",\"phase\":\"Copying\",\"copied\":5,\"awaited\":\"x\"}}"}}`
		aSB   = `{"metadata":{"namespace":"d8-x","name":"b","generation":1},"spec":{"size":"1Gi"},"status":{"usedBytes":1}}`
		class = `{"metadata":{"name":"local","resourceVersion":"1"},"volumeBindingMode":"WaitForFirstConsumer","allowVolumeExpansion":true}`
	)
	cases := map[string]struct {
		filter, object string
		from, to       string
		different      bool
	}{
		"a heartbeat":                  {filter: nodesFilter, object: aNode, from: `"lastHeartbeatTime":"1"`, to: `"lastHeartbeatTime":"2"`},
		"a label of others":            {filter: nodesFilter, object: aNode, from: `"kubernetes.io/hostname":"n"`, to: `"x":"y"`},
		"another value of a role":      {filter: nodesFilter, object: aNode, from: `system":""`, to: `system":"true"`},
		"a role":                       {filter: nodesFilter, object: aNode, from: `system":""`, to: `system-s3":""`, different: true},
		"a replica gets ready":         {filter: statefulSetsFilter, object: aSet, from: `"readyReplicas":2`, to: `"readyReplicas":3`},
		"the leaver scales":            {filter: statefulSetsFilter, object: aSet, from: `"replicas":3`, to: `"replicas":0`},
		"a fact changes":               {filter: statefulSetsFilter, object: aSet, from: `epoch":"1"`, to: `epoch":"2"`, different: true},
		"usage of a bucket":            {filter: bucketsFilter, object: aSB, from: `"usedBytes":1`, to: `"usedBytes":2`},
		"size of a bucket":             {filter: bucketsFilter, object: aSB, from: `"size":"1Gi"`, to: `"size":"2Gi"`, different: true},
		"an annotation of a claim":     {filter: claimsFilter, object: aPVC, from: `"labels"`, to: `"annotations":{"x":"y"},"labels"`},
		"a claim has grown":            {filter: claimsFilter, object: aPVC, from: `"capacity":{"storage":"10Gi"}`, to: `"capacity":{"storage":"15Gi"}`, different: true},
		"growth begins":                {filter: claimsFilter, object: aPVC, from: `"phase"`, to: `"conditions":[{"type":"Resizing","status":"True"}],"phase"`},
		"the file system has to grow":  {filter: claimsFilter, object: aPVC, from: `"phase"`, to: `"conditions":[{"type":"FileSystemResizePending","status":"True"}],"phase"`, different: true},
		"a volume fills":               {filter: stateFilter, object: aMap, from: `volumeFree\":900`, to: `volumeFree\":800`},
		"a store becomes unhealthy":    {filter: stateFilter, object: aMap, from: `healthy\":true`, to: `healthy\":false`},
		"a volume is full":             {filter: stateFilter, object: aMap, from: `full\":false`, to: `full\":true`, different: true},
		"more is copied":               {filter: stateFilter, object: aMove, from: `copied\":5`, to: `copied\":6`},
		"another thing is awaited":     {filter: stateFilter, object: aMove, from: `awaited\":\"x`, to: `awaited\":\"y`},
		"a move goes on":               {filter: stateFilter, object: aMove, from: `Copying`, to: `Verifying`, different: true},
		"a move ends":                  {filter: stateFilter, object: aMove, from: `\"migration\":`, to: `\"earlier\":`, different: true},
		"a version of a class":         {filter: classesFilter, object: class, from: `"resourceVersion":"1"`, to: `"resourceVersion":"2"`},
		"a class that cannot grow now": {filter: classesFilter, object: class, from: `"allowVolumeExpansion":true`, to: `"allowVolumeExpansion":false`, different: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, c.object, c.from)
			before, after := leaves(t, c.filter, c.object), leaves(t, c.filter, strings.Replace(c.object, c.from, c.to, 1))
			require.Equal(t, c.different, before != after, "%s\n%s", before, after)
		})
	}
}

// leaves is what the filter leaves of an object.
func leaves(t *testing.T, filter, object string) string {
	t.Helper()
	query, err := gojq.Parse(filter)
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal([]byte(object), &value))
	found, ok := query.Run(value).Next()
	require.True(t, ok)
	require.NotImplements(t, (*error)(nil), found)
	data, err := json.Marshal(found)
	require.NoError(t, err)
	return string(data)
}
