package chart

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deckhouse/system-s3/lib/plan"
)

// update rewrites the golden files: go test ./... -update.
var update = flag.Bool("update", false, "rewrite the golden files")

const (
	root   = "../.."
	golden = "testdata"
)

// world is a cluster as the planner sees it, and what the platform says of it besides.
type world struct {
	cluster  plan.Cluster
	settings plan.Settings
	masters  int
	modules  []string
	apis     []string
	version  string // of Deckhouse; none is a build of a developer
}

func masters(n int) world {
	w := world{masters: n, settings: plan.Settings{ControlPlaneHighlyAvailable: n > 1}}
	for i := range n {
		w.cluster.Nodes = append(w.cluster.Nodes, plan.Node{Name: "master-" + string(rune('0'+i)), Labels: []string{plan.MasterNodeLabel}})
	}
	w.cluster.Classes = []plan.StorageClass{{Name: "local", Default: true, Expandable: true}}
	return w
}

func (w world) bucket(gib int64) world {
	w.cluster.Buckets = append(w.cluster.Buckets, plan.Bucket{Namespace: "d8-monitoring", Name: "metrics", Bytes: gib << 30})
	return w
}

func (w world) system() world {
	w.cluster.Nodes = append(w.cluster.Nodes, plan.Node{Name: "system-0", Labels: []string{plan.SystemNodeLabel}})
	return w
}

func (w world) autoscaler() world {
	w.modules = append(w.modules, "vertical-pod-autoscaler")
	w.apis = append(w.apis, "autoscaling.k8s.io/v1/VerticalPodAutoscaler")
	return w
}

func (w world) on(version string) world {
	w.version = version
	return w
}

// between is a store on its way from one copy to three, or back: three Pods, of which the second has the only role.
func (w world) between() world {
	w.cluster.Planes = []plan.ObservedPlane{{
		ID: "a", Facts: plan.Facts{StorageClass: "local", Replicas: 3, ReplicationFactor: 1, Epoch: 2, Survivor: 1}, Known: true,
		TemplateBytes: 15 << 30, Progress: plan.Progress{Epoch: 2, Serving: true},
	}}
	return w
}

func (w world) frozen() world {
	w.cluster.Planes = []plan.ObservedPlane{{
		ID: "a", Facts: plan.Facts{StorageClass: "local", Replicas: 3, ReplicationFactor: 3, Epoch: 1}, Known: true,
		TemplateBytes: 15 << 30, Unreadable: "Secret garage-a is gone.",
	}}
	return w
}

// moving is a store on its way from plane a to plane b, as far as the controller has come; aborted asks for the old class
// again.
func (w world) moving(phase plan.Phase, aborted bool) world {
	w.settings.StorageClass = "fast"
	if aborted {
		w.settings.StorageClass = "local"
	}
	w.cluster.Classes = append(w.cluster.Classes, plan.StorageClass{Name: "fast", Expandable: true})
	w.cluster.Migration = &plan.MigrationState{Source: "a", Target: "b", Phase: phase}
	for id, of := range map[string]plan.Facts{"a": {StorageClass: "local", Role: plan.RoleActive}, "b": {StorageClass: "fast", Role: plan.RoleTarget}} {
		of.Replicas, of.ReplicationFactor, of.Epoch = 3, 3, 1
		w.cluster.Planes = append(w.cluster.Planes, plan.ObservedPlane{
			ID: id, Facts: of, Known: true, TemplateBytes: 15 << 30, Progress: plan.Progress{Epoch: 1, Serving: true},
		})
	}
	return w
}

// values are what addon-operator hands to the chart.
func (w world) values(t *testing.T) map[string]any {
	t.Helper()
	v := map[string]any{
		"global": map[string]any{
			"enabledModules": w.modules, "deckhouseVersion": w.version,
			"discovery": map[string]any{
				"clusterDomain": "cluster.test", "clusterMasterCount": w.masters,
				"clusterControlPlaneIsHighlyAvailable": w.masters > 1, "apiVersions": append([]string{}, w.apis...),
			},
			"modulesImages": map[string]any{
				"registry": map[string]any{"base": "registry.test/modules", "dockercfg": ""},
				"digests": map[string]any{"systemS3": map[string]any{
					"controller": "sha256:c0", "gateway": "sha256:9a", "garage": "sha256:6a",
				}},
			},
		},
		"systemS3": map[string]any{
			"logLevel": "Info",
			"registry": map[string]any{},
			"internal": map[string]any{
				"keyLifetimeSeconds": 1800, "rpcTimeoutMsec": 60000,
				"tls":     map[string]any{"ca": "CA", "caKey": "CA KEY", "crt": "CRT", "key": "KEY"},
				"keyRing": `{"keys":[]}`,
				"planes":  map[string]any{"a": planeSecrets(), "b": planeSecrets()},
				"plan":    plan.Decide(w.cluster, w.settings),
			},
		},
	}
	return asJSON(t, v)
}

func planeSecrets() map[string]any {
	hex := func(c string) string { return strings.Repeat(c, 64) }
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 64)))
	return map[string]any{
		"rpcSecret": hex("1"), "adminToken": hex("2"), "metricsToken": hex("3"), "seed": hex("4"),
		"nodeKeys": []string{key, key, key}, "nodeIDs": []string{hex("a"), hex("b"), hex("c")},
	}
}

// asJSON gives numbers and lists the types they have after the values went through JSON, as they do in the platform.
func asJSON(t *testing.T, v map[string]any) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	var out map[string]any
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

func worlds() map[string]world {
	return map[string]world{
		"no-bucket":      masters(3),
		"one-replica":    masters(1).bucket(1).on("v1.77.3"),
		"three-replicas": masters(3).bucket(10).autoscaler(),
		"system-tier":    masters(3).system().bucket(10),
		"between":        masters(3).bucket(10).between(),
		"frozen":         masters(3).bucket(10).frozen(),
		"copying":        masters(3).bucket(10).moving(plan.PhaseCopying, false),
		"retiring":       masters(3).bucket(10).moving(plan.PhaseRetiring, false),
		"aborting":       masters(3).bucket(10).moving(plan.PhaseCopying, true),
	}
}

func render(t *testing.T, w world) map[string]string {
	t.Helper()
	files, err := Render(root, w.values(t), w.apis...)
	require.NoError(t, err)
	return files
}

func objects(t *testing.T, w world) []unstructured.Unstructured {
	t.Helper()
	found, err := Objects(render(t, w))
	require.NoError(t, err)
	return found
}

func TestChartPrintsThePlan(t *testing.T) {
	for name, w := range worlds() {
		t.Run(name, func(t *testing.T) {
			files := render(t, w)
			var printed strings.Builder
			for _, file := range slices.Sorted(maps.Keys(files)) {
				printed.WriteString("# Source: " + file + "\n" + strings.Trim(files[file], "\n") + "\n---\n")
			}
			path := filepath.Join(golden, name+".yaml")
			if *update {
				require.NoError(t, os.MkdirAll(golden, 0o755))
				require.NoError(t, os.WriteFile(path, []byte(printed.String()), 0o644))
			}
			wanted, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(wanted), printed.String(), "the chart prints something else; if that is meant: go test ./... -update")
		})
	}
}
