package garagetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Wipe kills the node and replaces its disk with an empty one. Its identity stays, as the init step brings it.
func (n *Node) Wipe(t testing.TB) {
	t.Helper()
	n.Kill()
	meta := filepath.Join(n.Dir, "meta")
	entries, err := os.ReadDir(meta)
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.Name() != "node_key" && entry.Name() != "node_key.pub" {
			require.NoError(t, os.RemoveAll(filepath.Join(meta, entry.Name())))
		}
	}
	require.NoError(t, os.RemoveAll(filepath.Join(n.Dir, "data")))
	require.NoError(t, os.Mkdir(filepath.Join(n.Dir, "data"), 0o700))
}

// Garble kills the node and spoils the head of its database.
func (n *Node) Garble(t testing.TB) {
	t.Helper()
	n.Kill()
	file, err := os.OpenFile(filepath.Join(n.Dir, "meta", "db.lmdb", "data.mdb"), os.O_WRONLY, 0)
	require.NoError(t, err)
	const head = 8 << 10 // bytes: both of LMDB's meta pages
	_, err = file.WriteAt(randomBytesOf(t, head), 0)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// Log is all that the node wrote to its log.
func (n *Node) Log(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.Dir, "garage.log"))
	require.NoError(t, err)
	return string(text)
}

// DropBlocks deletes the blocks of the names from the node's disk, behind its back.
func (n *Node) DropBlocks(t testing.TB, names map[string]bool) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(n.Dir, "data"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && len(entry.Name()) >= blockName && names[entry.Name()[:blockName]] {
			return os.Remove(path) //nolint:gosec // a folder of the test
		}
		return err
	})
	require.NoError(t, err)
}

const blockName = 64 // hexadecimal digits

// Blocks is the names of the blocks on the node's disk.
func (n *Node) Blocks(t testing.TB) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(n.Dir, "data"), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && len(entry.Name()) >= blockName {
			name := entry.Name()
			found[name[:blockName]] = true
		}
		return nil // a folder that has just gone is no reason to stop
	})
	require.NoError(t, err)
	return found
}
