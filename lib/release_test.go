package lib_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// component is an entry of oss.yaml.
type component struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description"`
	Link        string `json:"link"`
	License     string `json:"license"`
}

func goTool(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	return out
}

// chosen are the modules that go.mod asks for by itself and that are in a program that is shipped, with their versions.
func chosen(t *testing.T) map[string]string {
	t.Helper()
	var gomod struct {
		Require []struct {
			Path     string `json:"Path"`
			Version  string `json:"Version"`
			Indirect bool   `json:"Indirect"`
		} `json:"Require"`
	}
	require.NoError(t, json.Unmarshal(goTool(t, "mod", "edit", "-json"), &gomod))
	shipped := string(goTool(t, "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{end}}", "./images/controller", "./images/gateway", "./hooks"))
	found := map[string]string{}
	for _, r := range gomod.Require {
		if !r.Indirect && strings.Contains(shipped, r.Path+" ") {
			found[r.Path] = strings.TrimPrefix(r.Version, "v")
		}
	}
	return found
}

// merged are modules that are released together with another one and under its licence.
var merged = map[string]bool{
	"github.com/aws/aws-sdk-go-v2/credentials": true,
	"github.com/aws/aws-sdk-go-v2/service/s3":  true,
}

func TestOSSListsWhatIsShipped(t *testing.T) {
	data, err := os.ReadFile("../oss.yaml")
	require.NoError(t, err)
	var listed []component
	require.NoError(t, yaml.UnmarshalStrict(data, &listed))
	versions := map[string]string{}
	for _, c := range listed {
		require.NotContains(t, versions, c.ID, "listed twice")
		for _, text := range []string{c.ID, c.Name, c.Version, c.Description, c.Link, c.License} {
			require.NotEmpty(t, text, c.ID)
		}
		versions[c.ID] = c.Version
	}
	require.NotEmpty(t, versions["garage"])
	wanted := map[string]string{"garage": versions["garage"]}
	for path, version := range chosen(t) {
		if !merged[path] {
			wanted[strings.ReplaceAll(path, "/", "-")] = version
		}
	}
	require.Equal(t, wanted, versions, "oss.yaml does not list what is shipped")
}

// The version of the chart, which a release is made of, has its changelog in both languages.
func TestTheVersionHasItsChangelog(t *testing.T) {
	data, err := os.ReadFile("../Chart.yaml")
	require.NoError(t, err)
	var chart struct {
		Version string `json:"version"`
	}
	require.NoError(t, yaml.Unmarshal(data, &chart))
	entries := map[string]int{}
	for _, twin := range []string{".yml", ".ru.yml"} {
		data, err := os.ReadFile("../CHANGELOG/v" + chart.Version + twin)
		require.NoError(t, err)
		var log map[string][]struct {
			Summary string `json:"summary"`
		}
		require.NoError(t, yaml.UnmarshalStrict(data, &log))
		for kind, changes := range log {
			require.Contains(t, []string{"features", "fixes", "chore"}, kind)
			for _, change := range changes {
				require.NotEmpty(t, change.Summary)
				entries[twin]++
			}
		}
	}
	require.Equal(t, entries[".yml"], entries[".ru.yml"])
	require.Positive(t, entries[".yml"])
}
