package artifact

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func shell(script string) func(source, out string) Command {
	return func(_, out string) Command {
		return Command{Dir: "/", Args: []string{"sh", "-c", script}, Env: []string{"OUT=" + out}}
	}
}

func TestEnsureBuildsOnce(t *testing.T) {
	t.Parallel()

	var said bytes.Buffer

	store := &Store{root: t.TempDir(), source: t.TempDir(), progress: &said}
	thing := Artifact{Name: "thing", Version: "1", Result: "bin/thing", Build: shell(`echo built >> "$OUT"`)}

	for range 2 {
		path, err := store.Ensure(t.Context(), thing)
		require.NoError(t, err)

		data, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "built\n", string(data))
	}

	assert.Contains(t, said.String(), "building thing 1 (0 s, ")
	require.Len(t, store.Builds(), 1)
	assert.Equal(t, "thing", store.Builds()[0].Name)
}

func TestFailedBuildLeavesNoResult(t *testing.T) {
	t.Parallel()

	store := &Store{root: t.TempDir(), source: t.TempDir(), progress: &bytes.Buffer{}}
	thing := Artifact{Name: "thing", Version: "1", Result: "bin/thing", Build: shell(`echo half > "$OUT"; echo why >&2; exit 1`)}

	path, err := store.Ensure(t.Context(), thing)
	require.ErrorIs(t, err, errBuild)
	assert.ErrorContains(t, err, "why", "the end of the log says what went wrong")
	assert.NoFileExists(t, path)

	thing.Build = shell(`echo whole > "$OUT"`)
	_, err = store.Ensure(t.Context(), thing)
	require.NoError(t, err, "the next run starts over")
}

func TestChangedSourceIsAnotherArtifact(t *testing.T) {
	t.Parallel()

	store := &Store{root: t.TempDir(), source: t.TempDir(), progress: &bytes.Buffer{}}
	thing := Artifact{Name: "thing", Version: "1", Result: "thing", Sources: []string{"src"}}
	file := filepath.Join(store.source, "src", "main.go")

	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte("a"), 0o600))

	first, err := store.Path(thing)
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(file, []byte("b"), 0o600))

	second, err := store.Path(thing)
	require.NoError(t, err)
	assert.NotEqual(t, first, second)
}

func TestWithoutSourceOnlyWhatIsBuiltIsFound(t *testing.T) {
	t.Parallel()

	thing := Artifact{Name: "thing", Version: "1", Result: "thing", Build: shell(`echo built > "$OUT"`)}
	store := &Store{root: t.TempDir(), noSource: ErrNoSource, progress: &bytes.Buffer{}}

	_, err := store.Ensure(t.Context(), thing)
	require.ErrorIs(t, err, ErrNoSource)

	store.noSource = nil
	_, err = store.Ensure(t.Context(), thing)
	require.NoError(t, err)

	store.noSource = ErrNoSource
	path, err := store.Ensure(t.Context(), thing)
	require.NoError(t, err, "taking a sandbox down works from anywhere")
	assert.FileExists(t, path)
}

func TestCalledOffBuildEndsWithItsChildren(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	store := &Store{root: t.TempDir(), progress: &bytes.Buffer{}}
	ready := filepath.Join(folder, "ready")
	thing := Artifact{Name: "thing", Version: "1", Result: "thing", Build: shell(`sleep 600 & echo $! > ` + ready + `.new; mv ` + ready + `.new ` + ready + `; wait`)}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)

	go func() {
		_, err := store.Ensure(ctx, thing)
		done <- err
	}()

	require.Eventually(t, func() bool { return exists(ready) }, 10*time.Second, 10*time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, errBuild)

	child, err := os.ReadFile(ready)
	require.NoError(t, err)
	assert.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(child)) + "/stat")

		return err != nil || strings.Contains(string(stat), ") Z ")
	}, 10*time.Second, 10*time.Millisecond, "a compiler that goes on would fight the next attempt")
}

func TestFindTool(t *testing.T) {
	t.Parallel()

	first, second := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(first, "tool"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(second, "tool"), nil, 0o700))

	path, err := findTool("tool", ":"+first+":"+second)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(second, "tool"), path, "the first one cannot be run")

	_, err = findTool("tool", first)
	require.ErrorIs(t, err, errNoTool)

	path, err = findTool("/bin/sh", "")
	require.NoError(t, err)
	assert.Equal(t, "/bin/sh", path)
}

func TestToolsAreFoundWithoutTheShellsHelp(t *testing.T) {
	t.Setenv("PATH", "/usr/bin")
	t.Setenv("CARGO_HOME", "/opt/cargo")
	t.Setenv("HOME", "/home/somebody")

	assert.Equal(t, "/usr/bin:/opt/cargo/bin:/home/somebody/.cargo/bin:/usr/local/go/bin:/usr/lib/go/bin", ToolPath())
}
