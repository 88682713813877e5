package statedir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lockInterval = 200 * time.Millisecond
	// lockLimit is longer than any command changes the sandbox for; builds are made
	// before the lock is taken.
	lockLimit = 15 * time.Minute
)

var errBusy = errors.New("another command changes the sandbox all the time")

// Lock makes the directory, makes sure that only one command changes the sandbox at a
// time, and returns what gives the lock back. It tells progress whom it waits for. The
// kernel frees the lock when its holder ends, however it ends.
func (d Dir) Lock(ctx context.Context, progress io.Writer) (func(), error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockLimit, errBusy)
	defer cancel()

	ticker := time.NewTicker(lockInterval)
	defer ticker.Stop()

	for told := false; ; told = true {
		if err := d.Create(); err != nil {
			return nil, err
		}

		unlock, err := d.tryLock()
		if err != nil || unlock != nil {
			return unlock, err
		}

		if !told {
			fmt.Fprintf(progress, "waiting for another command of the sandbox: %s\n", d.holder()) //nolint:errcheck // progress only
		}

		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", d.holder(), context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

func (d Dir) lockFile() string { return d.Path(lock) }

// holder says who holds the lock, as far as it is known.
func (d Dir) holder() string {
	text, err := os.ReadFile(d.lockFile())
	if err != nil || len(text) == 0 {
		return "unknown"
	}

	return string(text)
}

// tryLock returns nil when another command holds the lock, or held it and deleted the
// directory.
func (d Dir) tryLock() (func(), error) {
	file, err := os.OpenFile(d.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}

	if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil || !same(file, d.lockFile()) {
		return nil, file.Close()
	}

	// Only for those who wait: without it they do not learn for whom.
	if file.Truncate(0) == nil {
		_, _ = fmt.Fprintf(file, "process %d: %s", os.Getpid(), strings.Join(os.Args, " "))
	}

	// Again, now that nobody deletes it.
	if err := d.Create(); err != nil {
		return nil, errors.Join(err, file.Close())
	}

	return func() { _ = file.Close() }, nil
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
