package statedir_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

func TestForeignFolderIsNeitherUsedNorDeleted(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	precious := filepath.Join(folder, "precious")
	require.NoError(t, os.WriteFile(precious, nil, 0o600))

	dir := statedir.Dir(folder)
	require.Error(t, dir.Create())
	require.Error(t, dir.Remove())
	assert.FileExists(t, precious)
}

func TestCreateTwiceAndRemoveTwice(t *testing.T) {
	t.Parallel()

	dir := statedir.Dir(filepath.Join(t.TempDir(), "sandbox"))

	for range 2 {
		require.NoError(t, dir.Create())
	}

	assert.DirExists(t, dir.Records())

	for range 2 {
		require.NoError(t, dir.Remove())
	}

	assert.NoDirExists(t, string(dir))
}

func TestDefaultIsThePathBehindLinks(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(folder, "real"), 0o700))
	require.NoError(t, os.Symlink("real", filepath.Join(folder, "link")))

	t.Setenv(statedir.Variable, filepath.Join(folder, "link", "not", "yet"))
	assert.Equal(t, statedir.Dir(filepath.Join(folder, "real", "not", "yet")), statedir.Default())
}
