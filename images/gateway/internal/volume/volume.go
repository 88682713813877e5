// Package volume measures the volume that the gateway shares with Garage.
package volume

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Space is a volume's size and what is free for an unprivileged process, in bytes.
type Space struct {
	Total uint64 `json:"total"`
	Free  uint64 `json:"free"`
}

// Measure asks the file system that carries the path.
func Measure(path string) (Space, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return Space{}, fmt.Errorf("measure the volume %s: %w", path, err)
	}
	block := uint64(stat.Frsize) //nolint:gosec // the kernel reports positive sizes
	return Space{Total: stat.Blocks * block, Free: stat.Bavail * block}, nil
}
