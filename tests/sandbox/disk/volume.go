package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/deckhouse/system-s3/tests/sandbox/command"
)

const (
	// MinSize is the least size of a volume in bytes: XFS refuses less.
	MinSize    = 300 << 20
	folderMode = 0o700
	// Volumes are for whatever user a Pod runs as, also where the kubelet does not
	// change the owner.
	rootMode = 0o777
)

var errNoLoop = errors.New("no loop device")

// Volume is a folder with a file system of its own: a sparse file with XFS on it,
// mounted beside it.
type Volume struct {
	// Folder holds the file and the mount point.
	Folder string
}

// Path is where the file system is mounted.
func (v Volume) Path() string { return filepath.Join(v.Folder, "fs") }

func (v Volume) file() string { return filepath.Join(v.Folder, "disk.img") }

// Create makes the volume with the given size in bytes (at least MinSize), mounts
// it and opens it to all users. Called again after a kill, it goes on.
func (v Volume) Create(ctx context.Context, size int64) error {
	if err := os.MkdirAll(v.Folder, folderMode); err != nil {
		return fmt.Errorf("make the folder of a volume: %w", err)
	}

	if _, err := os.Stat(v.file()); err != nil {
		if err := v.format(ctx, max(size, MinSize)); err != nil {
			return err
		}
	}

	if err := v.Mount(ctx); err != nil {
		return err
	}

	if err := os.Chmod(v.Path(), rootMode); err != nil {
		return fmt.Errorf("open a volume to all users: %w", err)
	}

	return nil
}

// format makes the file with the file system in it. The file gets its name last,
// so that a killed run leaves no half of it.
func (v Volume) format(ctx context.Context, size int64) error {
	fresh := v.file() + ".new"
	if err := os.WriteFile(fresh, nil, 0o600); err != nil {
		return fmt.Errorf("make the file of a volume: %w", err)
	}

	if err := os.Truncate(fresh, size); err != nil {
		return fmt.Errorf("size the file of a volume: %w", err)
	}

	if err := command.Quick(ctx, "mkfs.xfs", "-q", "-f", fresh); err != nil {
		return fmt.Errorf("format a volume: %w", err)
	}

	if err := os.Rename(fresh, v.file()); err != nil {
		return fmt.Errorf("keep the file of a volume: %w", err)
	}

	return nil
}

// Mount mounts the volume unless it is mounted.
func (v Volume) Mount(ctx context.Context) error {
	mounted, err := Mounted(v.Path())
	if err != nil || mounted {
		return err
	}

	if err := os.MkdirAll(v.Path(), folderMode); err != nil {
		return fmt.Errorf("make the mount point of a volume: %w", err)
	}

	// Deleted blocks go back to the machine's disk (discard).
	if err := command.Quick(ctx, "mount", "-t", "xfs", "-o", "loop,discard", v.file(), v.Path()); err != nil {
		return fmt.Errorf("mount a volume: %w", err)
	}

	return nil
}

// Grow makes the mounted volume at least as large as size bytes, while it is used.
func (v Volume) Grow(ctx context.Context, size int64) error {
	info, err := os.Stat(v.file())
	if err != nil {
		return fmt.Errorf("look at the file of a volume: %w", err)
	}

	if info.Size() < size {
		if err := os.Truncate(v.file(), size); err != nil {
			return fmt.Errorf("size the file of a volume: %w", err)
		}
	}

	devices, err := Loops(v.file())
	if err != nil {
		return err
	}

	if len(devices) == 0 {
		return fmt.Errorf("grow %s: %w", v.Folder, errNoLoop)
	}

	if err := command.Quick(ctx, "losetup", "-c", devices[0]); err != nil {
		return fmt.Errorf("grow the loop device: %w", err)
	}

	if err := command.Quick(ctx, "xfs_growfs", v.Path()); err != nil {
		return fmt.Errorf("grow the file system: %w", err)
	}

	return nil
}

// Remove unmounts and deletes the volume; what is not there is no error.
func (v Volume) Remove(ctx context.Context) error {
	if err := ReleaseBelow(ctx, v.Folder); err != nil {
		return err
	}

	if err := os.RemoveAll(v.Folder); err != nil {
		return fmt.Errorf("delete a volume: %w", err)
	}

	return nil
}
