package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lockInterval = time.Second
	// lockLimit is longer than the longest build takes on a slow machine.
	lockLimit = 3 * time.Hour
)

var errStuck = errors.New("the other build does not end")

// lock waits until no other process builds the artifact. A lock of the kernel goes
// away with its holder, so a killed build blocks nobody.
func (s *Store) lock(ctx context.Context, a Artifact) (func(), error) {
	if err := os.MkdirAll(filepath.Join(s.root, "locks"), folderMode); err != nil {
		return nil, fmt.Errorf("make the folder of the locks: %w", err)
	}

	file, err := os.OpenFile(filepath.Join(s.root, "locks", a.Name+"-"+a.Version), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of %s: %w", a.Name, err)
	}

	ctx, cancel := context.WithTimeoutCause(ctx, lockLimit, errStuck)
	defer cancel()

	ticker := time.NewTicker(lockInterval)
	defer ticker.Stop()

	for told := false; unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil; {
		if !told {
			fmt.Fprintf(s.progress, "waiting for another build of %s\n", a.Name) //nolint:errcheck // progress only

			told = true
		}

		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for the build of %s: %w", a.Name, context.Cause(ctx)), file.Close())
		case <-ticker.C:
		}
	}

	return func() { _ = file.Close() }, nil
}
