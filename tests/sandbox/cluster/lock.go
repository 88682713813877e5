package cluster

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const lockInterval = 200 * time.Millisecond

// lock makes sure that only one command changes the sandbox at a time. The kernel
// frees it when the holder ends, however it ends.
func (c Cluster) lock(ctx context.Context) (func(), error) {
	ticker := time.NewTicker(lockInterval)
	defer ticker.Stop()

	for told := false; ; {
		unlock, err := c.tryLock()
		if err != nil || unlock != nil {
			return unlock, err
		}

		if !told {
			fmt.Fprintln(c.Progress, "waiting for another command of the sandbox") //nolint:errcheck // progress only

			told = true
		}

		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another command: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// tryLock returns nil when another command holds the lock.
func (c Cluster) tryLock() (func(), error) {
	path := c.Dir.Path("lock")

	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}

	if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && same(file, path) {
		return func() { _ = file.Close() }, nil
	}

	return nil, file.Close()
}

// same tells whether the open file is still the one at the path: "down" deletes it
// with everything else while others wait for it.
func same(file *os.File, path string) bool {
	held, err := file.Stat()
	if err != nil {
		return false
	}

	there, err := os.Stat(path)

	return err == nil && os.SameFile(held, there)
}
