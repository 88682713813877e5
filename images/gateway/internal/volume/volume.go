// Package volume measures the volume that the gateway shares with Garage and keeps the last of its space: Garage aborts
// on a full volume and does not start again, deletes included.
package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/deckhouse/system-s3/lib/names"
)

// Space is a volume's size and what is free for an unprivileged process, in bytes, and the same in files, both 0 where
// the file system has no limit of them.
type Space struct {
	Total     uint64 `json:"total"`
	Free      uint64 `json:"free"`
	Files     uint64 `json:"files,omitempty"`
	FreeFiles uint64 `json:"freeFiles,omitempty"`
}

// Measure asks the file system that carries the path.
func Measure(path string) (Space, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return Space{}, fmt.Errorf("measure the volume %s: %w", path, err)
	}
	block := uint64(stat.Frsize) //nolint:gosec // the kernel reports positive sizes
	return Space{Total: stat.Blocks * block, Free: stat.Bavail * block, Files: stat.Files, FreeFiles: stat.Ffree}, nil
}

// Content is the name that the volume's content was given when Garage was last started on it; empty when it has none.
func Content(path string) string {
	name, err := os.ReadFile(filepath.Join(path, names.ContentFile)) //nolint:gosec // below the volume that the environment names
	if err != nil {
		return "" // a volume of before names were given
	}
	return strings.TrimSpace(string(name))
}

const (
	// The reserve is what deletes, and whatever else Garage writes about what it has, may still need. A module's volume
	// is at least 10 GiB and grows when less than 5 % is free, so it has grown before writes are refused, if it can.
	reserveShare = 33 // 3 %
	leastReserve = 256 << 20
	mostReserve  = 4 << 30 // the share of metadata in a volume's size
	leastFiles   = 1000
)

// Reserve is how much of a volume is kept from writes, in bytes: 3 % of it, at least 256 MiB and at most 4 GiB.
func (s Space) Reserve() uint64 { return min(max(s.Total/reserveShare, leastReserve), mostReserve) }

// room is what may be written, in bytes; negative when the reserve is touched.
func (s Space) room() int64 {
	if s.Files > 0 && s.FreeFiles < leastFiles {
		return -1
	}
	return int64(s.Free) - int64(s.Reserve()) //nolint:gosec // volumes are smaller than 2^63 bytes
}
