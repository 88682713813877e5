package preparation

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/names"
)

func (v volume) content() string {
	v.t.Helper()
	require.NoError(v.t, Run(v.Config))
	name, err := os.ReadFile(filepath.Join(filepath.Dir(v.MetadataDir), names.ContentFile))
	require.NoError(v.t, err)
	return string(name)
}

// database is what Garage leaves in its file.
func (v volume) database(data string) {
	v.t.Helper()
	path := filepath.Join(v.MetadataDir, databaseFile)
	require.NoError(v.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(v.t, os.WriteFile(path, []byte(data), 0o600))
}

// TestTheContentOfAVolumeHasAName: what a replica once acknowledged may be gone although it comes back as itself.
func TestTheContentOfAVolumeHasAName(t *testing.T) {
	v := newVolume(t)
	v.content()
	v.database("pages")
	first := v.content()
	require.Equal(t, first, v.content(), "a restart keeps it")
	v.Epoch = 2
	require.Equal(t, first, v.content(), "an epoch keeps it")

	require.NoError(t, os.RemoveAll(filepath.Dir(filepath.Join(v.MetadataDir, databaseFile))))
	second := v.content()
	require.NotEqual(t, first, second, "the database was deleted")

	v.database("")
	third := v.content()
	require.NotEqual(t, second, third, "Garage takes an empty file for a new database")

	v.database("pages")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(v.MetadataDir), names.ContentFile), []byte("torn"), 0o600))
	fourth := v.content()
	require.NotEqual(t, third, fourth, "what cannot be read is not taken for the same")

	require.NoError(t, os.RemoveAll(filepath.Dir(v.MetadataDir)))
	require.NotEqual(t, fourth, v.content(), "the disk was replaced")
}
