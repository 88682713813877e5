package platform

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cold builds all programs without what was built before, which takes minutes: make reproducible.
var cold = flag.Bool("cold", false, "build all programs with empty caches")

const checkout = "../../.."

// copied is a copy of the sources at another place.
func copied(t *testing.T) string {
	t.Helper()

	dir := t.TempDir()
	for _, part := range []string{"go.mod", "go.sum", "lib", "images", "hooks"} {
		out, err := exec.CommandContext(t.Context(), "cp", "-r", filepath.Join(checkout, part), dir).CombinedOutput()
		require.NoError(t, err, string(out))
	}

	return dir
}

func digest(t *testing.T, path string) string {
	t.Helper()

	data, err := os.ReadFile(path)
	require.NoError(t, err)

	sum := sha256.Sum256(data)

	return hex.EncodeToString(sum[:])
}

// Whoever has the sources can build what is shipped and compare: neither the folder, nor the time, nor who builds shows.
func TestBuildsAreReproducible(t *testing.T) {
	here, err := filepath.Abs(checkout)
	require.NoError(t, err)

	programs := []string{"./images/gateway"} // one is enough to see that the flags do what they should
	if *cold {
		programs = append(programs, "./images/controller", "./hooks")
	}

	sources, out := []string{here, copied(t)}, t.TempDir()
	for _, pkg := range programs {
		digests := make([]string, 0, len(sources))

		for i, dir := range sources {
			env := []string{"USER=builder-" + string(rune('a'+i)), "TZ=" + []string{"UTC", "Asia/Tokyo"}[i]}
			if *cold {
				env = append(env, "GOCACHE="+t.TempDir())
			}

			binary := filepath.Join(out, filepath.Base(pkg))
			require.NoError(t, buildGo(t.Context(), build{dir: dir, pkg: pkg, out: binary, env: env}))

			digests = append(digests, digest(t, binary))

			told, err := exec.CommandContext(t.Context(), binary, "--version").Output()
			require.NoError(t, err)
			assert.Contains(t, string(told), "of system-s3 sandbox")
			require.NoError(t, os.Remove(binary))
		}

		assert.Equal(t, digests[0], digests[1], pkg)
		t.Logf("%s sha256:%s", pkg, digests[0])
	}
}

// What is tried here must be built as what is released.
func TestTheReleaseIsBuiltTheSameWay(t *testing.T) {
	template, err := os.ReadFile(filepath.Join(checkout, ".werf", "defines", "golang.tmpl"))
	require.NoError(t, err)

	for _, flags := range buildFlags() {
		flags = strings.TrimPrefix(flags, "-ldflags=")
		flags = strings.TrimSuffix(flags, "sandbox")
		assert.Contains(t, string(template), flags)
	}
}
