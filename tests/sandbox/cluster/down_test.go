package cluster

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/deckhouse/system-s3/tests/sandbox/command"
	"github.com/deckhouse/system-s3/tests/sandbox/disk"
	"github.com/deckhouse/system-s3/tests/sandbox/process"
	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

func testCluster(t *testing.T) Cluster {
	t.Helper()

	dir := statedir.Dir(t.TempDir())

	return Cluster{Dir: dir, Processes: process.NewTable(dir, io.Discard), Progress: io.Discard}
}

func TestNodesAreTheFoldersThatNameOne(t *testing.T) {
	t.Parallel()

	c := testCluster(t)
	for _, name := range []string{"node-10", "node-2", "lost+found"} {
		require.NoError(t, os.MkdirAll(c.Dir.Node(name), 0o700))
	}

	nodes, err := c.nodes()
	require.NoError(t, err, "a folder of somebody else does not keep down from its work")
	require.Len(t, nodes, 2)
	assert.Equal(t, "node-2", nodes[0].Name, "in the order of their numbers")
}

func TestFilesStayWhileSomethingIsMounted(t *testing.T) {
	t.Parallel()

	c := testCluster(t)
	require.NoError(t, c.Dir.Create())

	machine, point := t.TempDir(), c.Dir.Node("node-1", "kubelet", "volume")
	precious := filepath.Join(machine, "precious")

	require.NoError(t, os.WriteFile(precious, nil, 0o600))
	require.NoError(t, os.MkdirAll(point, 0o700))
	require.NoError(t, command.Run(t.Context(), "mount", "--bind", machine, point))

	require.ErrorIs(t, c.removeFiles(), errMounted)
	assert.FileExists(t, precious, "a folder of the machine that a Pod had mounted")

	require.NoError(t, unix.Unmount(point, unix.MNT_DETACH))
	require.NoError(t, c.removeFiles())
	assert.NoDirExists(t, string(c.Dir))
}

func TestDownWithoutASandboxDoesNothing(t *testing.T) {
	t.Parallel()

	c := testCluster(t)
	c.Dir = statedir.Dir(filepath.Join(t.TempDir(), "never"))
	require.NoError(t, c.Down(t.Context()))
	assert.NoDirExists(t, string(c.Dir))
}

func TestFilesDeletedUnderASandboxAreNoEndOfIt(t *testing.T) {
	t.Parallel()

	c := testCluster(t)
	require.NoError(t, c.Dir.Create())
	require.NoError(t, c.Processes.Start(t.Context(), process.Spec{Name: "sleeper", Args: []string{"sleep", "600"}}))

	r, _, err := c.Processes.Find("sleeper")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(string(c.Dir)))

	there, err := c.remains(t.Context())
	require.NoError(t, err)
	assert.True(t, there, "its processes bear its mark")

	require.NoError(t, c.Processes.KillGroup(t.Context(), ""))
	assert.False(t, r.Alive())
}

// All that a running sandbox has, but for the network, whose names are the machine's.
func TestDownRemovesWhatRunsAndWhatIsMounted(t *testing.T) {
	c := testCluster(t)
	require.NoError(t, c.Dir.Create())

	stubborn := []string{"sh", "-c", "trap '' TERM; sleep 600 & wait; sleep 600"}
	for _, spec := range []process.Spec{
		{Name: "platform", Args: stubborn},
		{Name: "node-199.kubelet", Args: stubborn, Group: "node-199"},
		{Name: "forgotten", Args: stubborn},
	} {
		require.NoError(t, c.Processes.Start(t.Context(), spec))
	}

	records, err := c.Processes.All()
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(c.Dir.Records(), "forgotten.json")))

	volume := disk.Volume{Folder: c.Dir.Volumes("node-199", "pv")}
	require.NoError(t, volume.Create(t.Context(), disk.MinSize))

	pod, memory := c.Dir.Node("node-199", "kubelet", "pods", "one"), c.Dir.Node("node-199", "run", "shm")
	require.NoError(t, os.MkdirAll(pod, 0o700))
	require.NoError(t, os.MkdirAll(memory, 0o700))
	require.NoError(t, command.Run(t.Context(), "mount", "--bind", volume.Path(), pod))
	require.NoError(t, command.Run(t.Context(), "mount", "-t", "tmpfs", "memory", memory))
	require.NoError(t, c.Processes.Start(t.Context(), process.Spec{
		Name: "writer", Args: []string{"sh", "-c", "exec 3>" + filepath.Join(pod, "open") + "; sleep 600"}, Group: "node-199",
	}))

	require.NoError(t, c.Down(t.Context()))
	assert.NoDirExists(t, string(c.Dir))

	for _, r := range records {
		assert.False(t, r.Alive(), r.Name)
	}

	loops, err := disk.Loops(string(c.Dir))
	require.NoError(t, err)
	assert.Empty(t, loops)

	points, err := disk.Mounts(string(c.Dir))
	require.NoError(t, err)
	assert.Empty(t, points)
	require.NoError(t, c.Down(t.Context()), "and once more")
}

func TestFailedStepKeepsTheFiles(t *testing.T) {
	c := testCluster(t)
	require.NoError(t, c.Dir.Create())
	require.NoError(t, os.WriteFile(c.Dir.Path("kernel.json"), []byte("{"), 0o600))

	require.Error(t, c.Down(t.Context()))
	assert.FileExists(t, c.Dir.Path("kernel.json"), "the next down goes by them")
}
