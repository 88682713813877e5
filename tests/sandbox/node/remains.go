package node

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/deckhouse/system-s3/tests/sandbox/process"
)

const (
	bundles       = "run/io.containerd.runtime.v2.task/k8s.io"
	cgroupRoot    = "/sys/fs/cgroup"
	cgroupParent  = "/k8s.io"
	deviceSocket  = "/var/lib/kubelet/device-plugins/kubelet.sock"
	pluginResults = "/var/lib/cni/results"
	podLogLinks   = "/var/log/containers"
)

// killContainers kills what runs in the containers of the node and deletes what
// containers leave outside of its folder. The node's containerd and its shims must
// be gone: they would start and tidy in between.
func killContainers(ctx context.Context, folder string) error {
	ids, err := containers(folder)
	if err != nil {
		return err
	}

	if err := process.Kill(ctx, inContainer(ids)); err != nil {
		return fmt.Errorf("kill the containers: %w", err)
	}

	for _, id := range ids {
		removeCgroups(filepath.Join(cgroupParent, id))
		removeShimSocket(filepath.Join(folder, bundles, id))

		if err := removeAll(filepath.Join(pluginResults, "*-"+id+"-*")); err != nil {
			return err
		}
	}

	return nil
}

// containers lists the ids of the containers that the node's runtime holds.
func containers(folder string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(folder, bundles, "*"))
	if err != nil {
		return nil, fmt.Errorf("list the containers: %w", err)
	}

	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}

	return paths, nil
}

// inContainer selects the processes in the cgroups of the containers.
func inContainer(ids []string) func(pid int) bool {
	return func(pid int) bool {
		data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
		if err != nil {
			return false
		}

		return slices.ContainsFunc(ids, func(id string) bool {
			return bytes.Contains(data, []byte(cgroupParent+"/"+id))
		})
	}
}

// removeShimSocket deletes the socket of a container's shim, which is outside of
// the node's folder; the shim wrote down where.
func removeShimSocket(bundle string) {
	data, err := os.ReadFile(filepath.Join(bundle, "address"))
	if err != nil {
		return // a container that was being made
	}

	// Containers of one Pod share a socket: the second finds it gone.
	if socket, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "unix://"); ok {
		_ = os.Remove(socket)
	}
}

// removeCgroups deletes the empty cgroups at and below the path in every
// hierarchy. A cgroup that does not go is harmless: it holds no process.
func removeCgroups(path string) {
	hierarchies, _ := filepath.Glob(cgroupRoot + "/*" + path)
	for _, top := range append(hierarchies, cgroupRoot+path) {
		var folders []string

		_ = filepath.WalkDir(top, func(folder string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				folders = append(folders, folder)
			}

			return nil
		})

		slices.Reverse(folders)

		for _, folder := range folders {
			_ = unix.Rmdir(folder)
		}
	}
}

// Sweep deletes what the nodes left outside of the state directory: paths that are
// compiled into the kubelet, containerd and the network plugins. Of what others may
// use too only empty folders go.
func Sweep(ctx context.Context, state string) error {
	if err := removeAll(filepath.Join(pluginResults, networkName+"-*")); err != nil {
		return err
	}

	if err := removeLogLinks(state); err != nil {
		return err
	}

	if !listening(ctx, deviceSocket) {
		_ = os.Remove(deviceSocket)
	}

	for _, folder := range []string{
		filepath.Dir(deviceSocket), "/var/lib/kubelet", pluginResults, filepath.Dir(pluginResults),
		podLogLinks, "/var/log/pods", "/run/containerd/s", "/run/containerd",
	} {
		_ = unix.Rmdir(folder)
	}

	hierarchies, _ := filepath.Glob(cgroupRoot + "/*" + cgroupParent)
	for _, folder := range append(hierarchies, cgroupRoot+cgroupParent) {
		_ = unix.Rmdir(folder)
	}

	return nil
}

// removeLogLinks deletes the links that kubelets make to their containers' logs.
func removeLogLinks(state string) error {
	links, err := filepath.Glob(podLogLinks + "/*.log")
	if err != nil {
		return fmt.Errorf("list the links to logs: %w", err)
	}

	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(target, state+"/") {
			continue
		}

		if err := os.Remove(link); err != nil {
			return fmt.Errorf("delete a link to logs: %w", err)
		}
	}

	return nil
}

func removeAll(pattern string) error {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("list %s: %w", pattern, err)
	}

	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
	}

	return nil
}

// listening tells whether a process answers at the socket.
func listening(ctx context.Context, socket string) bool {
	var dialer net.Dialer

	connection, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}

	_ = connection.Close()

	return true
}
