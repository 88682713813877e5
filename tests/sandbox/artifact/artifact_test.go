package artifact

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

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

	assert.Contains(t, said.String(), "building thing 1 (0 s)")
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
