package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	deviceSocket  = "/var/lib/kubelet/device-plugins/kubelet.sock"
	pluginResults = "/var/lib/cni/results"
	podLogLinks   = "/var/log/containers"
	answerLimit   = time.Second
)

// Sweep deletes what the nodes left outside of the state directory: containers whose
// node is not known any more, and files at paths that are compiled into the kubelet,
// containerd and the network plugins. Of what others may use too only empty folders go.
func Sweep(ctx context.Context, state string) error {
	err := errors.Join(
		killContainers(ctx, state),
		removeOurs(podLogLinks, func(path string) bool { return pointsInto(path, state) }),
	)

	if !listening(ctx, deviceSocket) {
		_ = unix.Unlink(deviceSocket)
	}

	for _, folder := range append([]string{
		filepath.Dir(deviceSocket), "/var/lib/kubelet", pluginResults, filepath.Dir(pluginResults),
		podLogLinks, "/var/log/pods", "/run/containerd/s", "/run/containerd",
	}, hierarchies(cgroupParent)...) {
		_ = unix.Rmdir(folder)
	}

	return err
}

// mentions tells whether the network plugins' note on a Pod names a place below the
// folder: the Pod's namespace is there.
func mentions(path, folder string) bool {
	data, err := fs.ReadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path))

	return err == nil && bytes.Contains(data, []byte(folder+"/"))
}

// pointsInto tells whether the path is a link to something below the state directory,
// such as those that kubelets make to their containers' logs.
func pointsInto(path, state string) bool {
	target, err := os.Readlink(path)

	return err == nil && strings.HasPrefix(target, state+"/")
}

// removeOurs deletes the files in the folder that are ours.
func removeOurs(folder string, ours func(path string) bool) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sweep: %w", err)
	}

	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if entry.IsDir() || !ours(path) {
			continue
		}

		if err := unix.Unlink(path); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("sweep %s: %w", path, err)
		}
	}

	return nil
}

// listening tells whether a process answers at the socket.
func listening(ctx context.Context, socket string) bool {
	dialer := net.Dialer{Timeout: answerLimit}

	connection, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}

	_ = connection.Close()

	return true
}
