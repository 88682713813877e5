// Package lib_test guards the structure of the module: which package may import which (docs/internal/architecture.md).
package lib_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/deckhouse/system-s3/"

// pure packages decide; they may import only what cannot read the world.
var pure = map[string][]string{
	"lib/plan":      {},
	"lib/layout":    {},
	"lib/migration": {"lib/plan"},
	"lib/access":    {"lib/names"},
	"lib/names":     {},
	"lib/metrics":   {},
	"lib/version":   {},

	"images/controller/internal/status": {"lib/names", "lib/plan"},
}

// impure are the standard packages through which a decision could read the world or speak to it.
var impure = []string{"context", "net/http", "net", "os", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "os/exec", "syscall"}

// arrows are the packages of our own that a package may import, besides its own subpackages.
var arrows = map[string][]string{
	"lib/api":           {},
	"lib/garage":        {"lib/layout", "lib/access", "lib/names"},
	"lib/kube":          {"lib/access", "lib/api", "lib/names", "lib/sts"},
	"lib/sts":           {"lib/access", "lib/names"},
	"lib/sigv4":         {"lib/access", "lib/names"},
	"hooks":             {"lib/plan", "lib/names", "lib/access", "lib/api", "lib/version"},
	"images/controller": {"images/controller/internal/status", "lib/access", "lib/api", "lib/garage", "lib/kube", "lib/layout", "lib/metrics", "lib/migration", "lib/names", "lib/plan", "lib/sts", "lib/version"},
	"tests/docs":        {},
	"images/gateway":    {"lib/access", "lib/garage", "lib/metrics", "lib/names", "lib/sigv4", "lib/version"},
}

type listed struct {
	ImportPath string   `json:"ImportPath"`
	Imports    []string `json:"Imports"`
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if exit := (&exec.ExitError{}); errors.As(err, &exit) {
		t.Fatalf("go list: %s", exit.Stderr)
	}
	require.NoError(t, err)
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}

// owner finds the entry of rules that a package belongs to: itself or the nearest folder above.
func owner(rules map[string][]string, path string) (string, bool) {
	for path != "" {
		if _, ok := rules[path]; ok {
			return path, true
		}
		cut := strings.LastIndex(path, "/")
		if cut < 0 {
			return "", false
		}
		path = path[:cut]
	}
	return "", false
}

func TestArrowsPointDown(t *testing.T) {
	all := map[string][]string{}
	for _, rules := range []map[string][]string{pure, arrows} {
		for k, v := range rules {
			all[k] = v
		}
	}
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		if path == "lib" {
			continue // this test
		}
		from, ok := owner(all, path)
		require.True(t, ok, "package %s has no rule: add it to lib/arrows_test.go and docs/internal/architecture.md", path)
		for _, imported := range p.Imports {
			own, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			to, ok := owner(all, own)
			require.True(t, ok, "package %s has no rule", own)
			require.True(t, to == from || slices.Contains(all[from], to), "%s must not import %s", path, own)
		}
	}
}

func TestPurePackagesCannotReadTheWorld(t *testing.T) {
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		if _, isPure := pure[path]; !isPure {
			continue
		}
		for _, imported := range p.Imports {
			require.NotContains(t, impure, imported, "%s is pure and must not import %s", path, imported)
			external := strings.Contains(strings.SplitN(imported, "/", 2)[0], ".")
			require.True(t, !external || strings.HasPrefix(imported, module), "%s is pure and must not import %s", path, imported)
		}
	}
}
