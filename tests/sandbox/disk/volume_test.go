package disk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/deckhouse/system-s3/tests/sandbox/command"
	"github.com/deckhouse/system-s3/tests/sandbox/disk"
)

func size(t *testing.T, path string) int64 {
	t.Helper()

	var stat unix.Statfs_t

	require.NoError(t, unix.Statfs(path, &stat))

	return int64(stat.Blocks) * stat.Bsize
}

// The volumes are made of loop devices and mounts: the test needs root, as the sandbox does.
func TestVolumeGrowsAndGoes(t *testing.T) {
	folder := t.TempDir()
	volume := disk.Volume{Folder: filepath.Join(folder, "volumes", "one")}

	require.NoError(t, volume.Create(t.Context(), 1))
	require.NoError(t, volume.Create(t.Context(), 1), "a second attempt finds the first one's")

	before := size(t, volume.Path())
	assert.Less(t, before, int64(disk.MinSize), "no smaller than XFS allows, and it is full when it is full")

	require.NoError(t, volume.Grow(t.Context(), 2*disk.MinSize))
	assert.Greater(t, size(t, volume.Path()), before+disk.MinSize/2)

	loops, err := disk.Loops(folder)
	require.NoError(t, err)
	assert.Len(t, loops, 1)

	require.NoError(t, volume.Remove(t.Context()))
	require.NoError(t, disk.AwaitFree(t.Context(), folder))
	assert.NoDirExists(t, volume.Folder)
	require.NoError(t, volume.Remove(t.Context()), "what is gone is no error")
}

// As "down" finds it: the volume is used by a Pod, so it is mounted in two places, with
// something mounted on it, and a file of it is open.
func TestReleaseOfWhatIsInUse(t *testing.T) {
	folder := t.TempDir()
	volume := disk.Volume{Folder: filepath.Join(folder, "volumes", "one")}
	pod := filepath.Join(folder, "kubelet", "pods", "one", "volume with space")

	require.NoError(t, volume.Create(t.Context(), disk.MinSize))
	require.NoError(t, os.MkdirAll(pod, 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(volume.Path(), "sub"), 0o700))
	require.NoError(t, command.Run(t.Context(), "mount", "--bind", volume.Path(), pod))
	require.NoError(t, command.Run(t.Context(), "mount", "-t", "tmpfs", "tmpfs", filepath.Join(pod, "sub")))
	require.NoError(t, command.Run(t.Context(), "mount", "-t", "tmpfs", "tmpfs", pod), "one mount hides the others")

	open, err := os.Create(filepath.Join(volume.Path(), "file"))
	require.NoError(t, err)

	require.NoError(t, disk.ReleaseBelow(t.Context(), folder))

	points, err := disk.Mounts(folder)
	require.NoError(t, err)
	assert.Empty(t, points)

	loops, err := disk.Loops(folder)
	require.NoError(t, err)
	assert.Len(t, loops, 1, "an open file holds the device")

	require.NoError(t, open.Close())
	require.NoError(t, disk.AwaitFree(t.Context(), folder))
}

func TestADiskOfTheFolderItselfIsNotOurs(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, command.Run(t.Context(), "mount", "-t", "tmpfs", "tmpfs", folder))

	t.Cleanup(func() { assert.NoError(t, unix.Unmount(folder, unix.MNT_DETACH)) })

	require.NoError(t, os.WriteFile(filepath.Join(folder, "file"), nil, 0o600))
	require.NoError(t, disk.ReleaseBelow(t.Context(), folder))
	assert.FileExists(t, filepath.Join(folder, "file"))
}
