package preparation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

const (
	fileMode = 0o600 // Garage refuses secrets that others could read
	dirMode  = 0o700
	// temporary marks a file being written. One name per file: what a killed run left is written over.
	temporary = ".preparing"
)

// makeDir makes the directory and its parents, leaving an existing one as it is.
func makeDir(path string) error {
	// The parent of one that exists may be read-only, which some file systems refuse to sync.
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(path, dirMode); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// writeFile replaces the file in one step, so that a reader or a killed run sees the old or the new content.
func writeFile(path string, data []byte) error {
	if err := writeSynced(path+temporary, data); err != nil {
		return err
	}
	if err := os.Rename(path+temporary, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func writeSynced(path string, data []byte) (err error) {
	// A leftover may have any mode; a new file gets ours.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode) //nolint:gosec // the path is configuration
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.Sync()
}

// moveAside renames dir/name to dir/name+suffix, to a free name when there is such a file already: nothing that was
// kept is written over. A file that is not there has been moved before.
func moveAside(dir, name, suffix string) error {
	from := filepath.Join(dir, name)
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	to, err := freeName(from + suffix)
	if err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(dir)
}

func freeName(path string) (string, error) {
	candidate := path
	for n := 2; ; n++ {
		_, err := os.Lstat(candidate)
		if errors.Is(err, fs.ErrNotExist) {
			return candidate, nil
		}
		if err != nil {
			return "", err
		}
		candidate = path + "." + strconv.Itoa(n)
	}
}

// syncDir makes a rename or a new entry survive a power loss.
func syncDir(path string) (err error) {
	dir, err := os.Open(path) //nolint:gosec // the path is configuration
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}
