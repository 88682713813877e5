package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestContainerIn(t *testing.T) {
	t.Parallel()

	id := strings.Repeat("0123456789abcdef", 4)

	cases := map[string]struct{ reason, cgroups, want string }{
		"older kind":  {reason: "a line for each controller", cgroups: "8:pids:/k8s.io/" + id + "\n0::/k8s.io/" + id + "\n", want: id},
		"newer kind":  {reason: "one line", cgroups: "0::/k8s.io/" + id + "\n", want: id},
		"below":       {reason: "a container may divide its own", cgroups: "0::/k8s.io/" + id + "/part\n", want: id},
		"longer name": {reason: "not an id", cgroups: "0::/k8s.io/" + id + "0\n"},
		"elsewhere":   {reason: "not of our kind of kubelet", cgroups: "0::/kubepods/" + id + "\n"},
		"none":        {reason: "a process of the machine", cgroups: "0::/\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, containerIn(c.cgroups), c.reason)
		})
	}
}

func TestOverlaid(t *testing.T) {
	t.Parallel()

	const (
		machine = "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
		ours    = "676 424 0:198 / / ro - overlay layers rw,lowerdir=1/fs,upperdir=/box/nodes/node-1/containerd/9/fs,workdir=/box/nodes/node-1/containerd/9/work\n"
		theirs  = "676 424 0:198 / / ro - overlay layers rw,lowerdir=/other/1/fs,upperdir=/other/9/fs,workdir=/other/9/work\n"
		bind    = "694 676 254:0 /box/nodes/node-1/kubelet/hosts /etc/hosts rw - ext4 /dev/vda rw\n"
	)

	cases := map[string]struct {
		reason, mounts, folder string
		want                   bool
	}{
		"node":     {reason: "its root is of the node's layers", mounts: ours + bind, folder: "/box/nodes/node-1", want: true},
		"sandbox":  {reason: "and of the sandbox's", mounts: ours + bind, folder: "/box", want: true},
		"namesake": {reason: "node-1 is not node-11", mounts: ours, folder: "/box/nodes/node-11"},
		"other":    {reason: "another node's", mounts: ours, folder: "/box/nodes/node-2"},
		"foreign":  {reason: "a container of somebody else", mounts: theirs, folder: "/box"},
		"unfinished": {
			reason: "a container in the making of another node sees all mounts of the machine", folder: "/box/nodes/node-1",
			mounts: machine + "40 22 0:5 / /box/nodes/node-1/run/rootfs rw - overlay layers rw,upperdir=/box/nodes/node-1/containerd/9/fs\n",
		},
		"nothing": {reason: "the process has ended", folder: "/box"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, overlaid(c.mounts, c.folder), c.reason)
		})
	}
}

func TestRemoveOursLeavesTheRest(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	state := "/box"
	ours, theirs := filepath.Join(folder, "ours"), filepath.Join(folder, "theirs")

	require.NoError(t, os.WriteFile(ours, []byte(`{"sandbox":"/box/nodes/node-1/run/netns/cni-1"}`), 0o600))
	require.NoError(t, os.WriteFile(theirs, []byte(`{"sandbox":"/boxes/netns/cni-1"}`), 0o600))
	require.NoError(t, os.Symlink("/box/nodes/node-1/logs/0.log", ours+".log"))
	require.NoError(t, os.Symlink("/var/log/pods/0.log", theirs+".log"))

	require.NoError(t, removeOurs(folder, func(path string) bool { return mentions(path, state) || pointsInto(path, state) }))
	require.NoError(t, removeOurs(filepath.Join(folder, "absent"), nil))

	left, err := filepath.Glob(folder + "/*")
	require.NoError(t, err)
	assert.Equal(t, []string{theirs, theirs + ".log"}, left)
}
