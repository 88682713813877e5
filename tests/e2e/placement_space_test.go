package e2e

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// space of the file system at the path, in bytes.
func space(path string) (total, free uint64, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return 0, 0, fmt.Errorf("measure %s: %w", path, err)
	}
	block := uint64(stat.Frsize)
	return stat.Blocks * block, stat.Bavail * block, nil
}
