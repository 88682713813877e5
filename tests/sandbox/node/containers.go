package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deckhouse/system-s3/tests/sandbox/process"
)

const (
	bundles      = "run/io.containerd.runtime.v2.task/k8s.io"
	cgroupRoot   = "/sys/fs/cgroup"
	cgroupParent = "/k8s.io"
	// cgroupLimit bounds the wait for the kernel to notice that a cgroup is empty.
	cgroupLimit    = 5 * time.Second
	cgroupInterval = 20 * time.Millisecond
)

// cgroupPattern finds the container's id in /proc/<pid>/cgroup.
var cgroupPattern = regexp.MustCompile(cgroupParent + `/([0-9a-f]{64})(/|\s|$)`)

// killContainers kills what runs in the containers of the node and deletes what
// containers leave outside of its folder. The node's containerd and its shims must
// be gone: they would start and tidy in between.
func killContainers(ctx context.Context, folder string) error {
	ids, err := known(folder)
	if err != nil {
		return err
	}

	found := map[string]bool{}
	for _, id := range ids {
		found[id] = true
	}

	err = process.Kill(ctx, func(pid int) bool {
		id := containerOf(pid)
		if id == "" || !found[id] && !rootedIn(pid, folder) {
			return false
		}

		found[id] = true

		return true
	})
	if err != nil {
		return fmt.Errorf("kill the containers: %w", err)
	}

	for id := range maps.Keys(found) {
		removeCgroups(ctx, filepath.Join(cgroupParent, id))
		removeShimSocket(folder, id)
	}

	return removeOurs(pluginResults, func(path string) bool { return mentions(path, folder) })
}

// known lists the ids of the containers that the node's runtime holds.
func known(folder string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(folder, bundles, "*"))
	if err != nil {
		return nil, fmt.Errorf("list the containers: %w", err)
	}

	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}

	return paths, nil
}

// containerOf is the id of the container that a process runs in; empty for none.
func containerOf(pid int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return ""
	}

	return containerIn(string(text))
}

func containerIn(cgroups string) string {
	match := cgroupPattern.FindStringSubmatch(cgroups)
	if match == nil {
		return ""
	}

	return match[1]
}

// rootedIn tells whether a process has its root file system below the folder: that
// of a container whose runtime has lost sight of it.
func rootedIn(pid int, folder string) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/mountinfo")

	return err == nil && overlaid(string(text), folder)
}

// overlaid tells whether the root in the text of a mountinfo is an overlay whose
// layers are below the folder. Other mounts do not count: a container in the making
// still has all those of the machine.
func overlaid(mounts, folder string) bool {
	const mountPoint = 4

	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) > mountPoint && fields[mountPoint] == "/" {
			return strings.Contains(line, "dir="+folder+"/")
		}
	}

	return false
}

// removeShimSocket deletes the socket of a container's shim, which is outside of
// the node's folder; the shim wrote down where.
func removeShimSocket(folder, id string) {
	data, err := fs.ReadFile(os.DirFS(folder), filepath.Join(bundles, id, "address"))
	if err != nil {
		return // a container that was being made
	}

	// Containers of one Pod share a socket: the second finds it gone.
	if socket, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "unix://"); ok {
		_ = unix.Unlink(socket)
	}
}

// removeCgroups deletes the cgroups at and below the path in every hierarchy. The
// last process may have ended only just now, so it tries for a while. A cgroup that
// does not go is harmless: it holds no process.
func removeCgroups(ctx context.Context, path string) {
	_ = wait.PollUntilContextTimeout(ctx, cgroupInterval, cgroupLimit, true, func(context.Context) (bool, error) {
		gone := true

		for _, top := range hierarchies(path) {
			for _, folder := range slices.Backward(foldersBelow(top)) {
				err := unix.Rmdir(folder)
				gone = gone && (err == nil || errors.Is(err, unix.ENOENT))
			}
		}

		return gone, nil
	})
}

// hierarchies lists where the cgroup of the path is: in one place, or with the older
// kind of cgroups in one for each controller.
func hierarchies(path string) []string {
	found, _ := filepath.Glob(cgroupRoot + "/*" + path)

	return append(found, cgroupRoot+path)
}

// foldersBelow lists the folder and those below it, the deepest last.
func foldersBelow(top string) []string {
	var folders []string

	_ = filepath.WalkDir(top, func(folder string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, folder)
		}

		return nil
	})

	return folders
}
