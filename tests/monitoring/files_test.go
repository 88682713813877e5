package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const root = "../.."

// rule is an alert as the module ships it.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

type group struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

// groups are those of all files of rules, in the order of the files.
func groups(t *testing.T) []group {
	t.Helper()
	paths, err := filepath.Glob(root + "/monitoring/prometheus-rules/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	var all []group
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		var found []group
		require.NoError(t, yaml.Unmarshal(data, &found), path)
		all = append(all, found...)
	}
	return all
}

// alerts by name.
func alerts(t *testing.T) map[string]rule {
	t.Helper()
	found := map[string]rule{}
	for _, g := range groups(t) {
		for _, r := range g.Rules {
			require.NotContains(t, found, r.Alert, "two alerts of one name")
			found[r.Alert] = r
		}
	}
	return found
}

// version of Prometheus, as go.mod has it.
func version(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "github.com/prometheus/prometheus").Output()
	require.NoError(t, err)
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "v0.")
}

var building sync.Mutex

// program is one of Prometheus' own, built into the cache the first time, which takes minutes.
func program(t *testing.T, name string) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	path := filepath.Join(cache, "system-s3", "prometheus-0."+version(t), name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	t.Logf("building %s (a few minutes)", path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	fresh := path + ".new"
	out, err := exec.CommandContext(t.Context(), "nice", "go", "build", "-trimpath", "-tags", "remove_all_sd", "-ldflags", "-s -w",
		"-o", fresh, "github.com/prometheus/prometheus/cmd/"+name).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, os.Rename(fresh, path))
	return path
}
