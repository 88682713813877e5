package garagetest

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
)

// Cross makes a stopped node ready for an epoch with so many copies, as the init step of its Pod does: the old layout is
// moved aside, and nodes of other epochs are strangers.
func (c *Cluster) Cross(t testing.TB, ordinal, epoch, copies int) {
	t.Helper()
	node := c.Nodes[ordinal]
	for _, name := range []string{"cluster_layout", "peer_list"} {
		path := filepath.Join(node.Dir, "meta", name)
		if err := os.Rename(path, path+".before-"+strconv.Itoa(epoch)); !errors.Is(err, fs.ErrNotExist) {
			require.NoError(t, err)
		}
	}
	secret, err := hex.DecodeString(c.rpcSecret)
	require.NoError(t, err)
	of := *c
	of.factor, of.rpcSecret = copies, access.RPCSecret(secret, epoch)
	node.configure(t, &of)
}

// Wipe empties a stopped node's volume; its identity stays.
func (c *Cluster) Wipe(t testing.TB, ordinal int) {
	t.Helper()
	node := c.Nodes[ordinal]
	for _, dir := range []string{"meta", "data"} {
		require.NoError(t, os.RemoveAll(filepath.Join(node.Dir, dir)))
	}
	node.prepare(t, c)
}

// Blocks are the names of the block files on a node's disk.
func (c *Cluster) Blocks(t testing.TB, ordinal int) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(c.Nodes[ordinal].Dir, "data"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && len(filepath.Base(path)) >= 64 {
			found[filepath.Base(path)[:64]] = true
		}
		return err
	})
	require.NoError(t, err)
	return found
}
