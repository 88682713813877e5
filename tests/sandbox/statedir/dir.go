// Package statedir knows where the sandbox keeps what: everything lies under one
// directory, so removing the sandbox ends with removing that directory.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// Variable is the environment variable that names the directory.
	Variable = "SANDBOX_DIR"
	fallback = "/var/lib/system-s3-sandbox"
	private  = 0o700
	mark     = ".system-s3-sandbox"
	lock     = "lock"
)

var errForeign = errors.New("the folder is not a sandbox's, choose another with " + Variable)

// Dir is the state directory, an absolute path without a trailing slash.
type Dir string

// Default is $SANDBOX_DIR, else the usual place.
func Default() Dir {
	if set := os.Getenv(Variable); set != "" {
		if abs, err := filepath.Abs(set); err == nil {
			return Dir(resolve(abs))
		}
	}

	return Dir(resolve(fallback))
}

// resolve replaces the symbolic links in a path, whose last parts need not exist yet:
// the kernel lists mounts and loop devices by the paths behind them.
func resolve(path string) string {
	if behind, err := filepath.EvalSymlinks(path); err == nil {
		return behind
	}

	parent := filepath.Dir(path)
	if parent == path {
		return path
	}

	return filepath.Join(resolve(parent), filepath.Base(path))
}

// Path joins the elements to the directory.
func (d Dir) Path(elements ...string) string {
	return filepath.Join(append([]string{string(d)}, elements...)...)
}

// Kubeconfig is the administrator's kubeconfig.
func (d Dir) Kubeconfig() string { return d.Path("kubeconfig") }

// Log is the log file of a process.
func (d Dir) Log(process string) string { return d.Path("logs", process+".log") }

// Records holds the records of the started processes.
func (d Dir) Records() string { return d.Path("pids") }

// PKI holds keys, certificates and the kubeconfigs of the components.
func (d Dir) PKI(elements ...string) string {
	return d.Path(append([]string{"pki"}, elements...)...)
}

// Node holds everything that is on one node, its disks not included.
func (d Dir) Node(name string, elements ...string) string {
	return d.Path(append([]string{"nodes", name}, elements...)...)
}

// Volumes holds the disks of one place: of a node or of the network storage.
func (d Dir) Volumes(place string, elements ...string) string {
	return d.Path(append([]string{"volumes", place}, elements...)...)
}

// Create makes the directory and the parts of it that everyone writes to. A folder
// that holds something else already is refused: it would be deleted in the end.
func (d Dir) Create() error {
	entries, err := os.ReadDir(string(d))
	if err == nil && len(entries) > 0 && !d.ours() {
		return fmt.Errorf("%s: %w", d, errForeign)
	}

	if err := os.MkdirAll(string(d), private); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}

	if err := os.WriteFile(d.Path(mark), nil, 0o600); err != nil {
		return fmt.Errorf("mark the state directory: %w", err)
	}

	for _, path := range []string{d.Path("logs"), d.Records(), d.PKI(), d.Path("nodes"), d.Path("volumes")} {
		if err := os.MkdirAll(path, private); err != nil {
			return fmt.Errorf("make the state directory: %w", err)
		}
	}

	return nil
}

// Remove deletes the directory. Nothing may be mounted below any more. The lock goes
// last: whoever waits for it takes it at that moment, and may start anew.
func (d Dir) Remove() error {
	if !d.Exists() {
		return nil
	}

	if !d.ours() {
		return fmt.Errorf("%s: %w", d, errForeign)
	}

	entries, err := os.ReadDir(string(d))
	if err != nil {
		return fmt.Errorf("delete the state directory: %w", err)
	}

	for _, entry := range entries {
		if entry.Name() == lock || entry.Name() == mark {
			continue
		}

		if err := os.RemoveAll(d.Path(entry.Name())); err != nil {
			return fmt.Errorf("delete the state directory: %w", err)
		}
	}

	return errors.Join(remove(d.Path(mark)), remove(d.Path(lock)), remove(string(d)))
}

// remove deletes a file or an empty folder. A folder may hold the next sandbox already,
// or have a disk of its own mounted at it.
func remove(path string) error {
	err := os.Remove(path)
	for _, fine := range []error{fs.ErrNotExist, unix.ENOTEMPTY, unix.EBUSY} {
		if errors.Is(err, fine) {
			return nil
		}
	}

	if err != nil {
		return fmt.Errorf("delete the state directory: %w", err)
	}

	return nil
}

// ours tells whether the folder is a sandbox's. One that was being deleted holds the
// lock and nothing else.
func (d Dir) ours() bool {
	if _, err := os.Stat(d.Path(mark)); err == nil {
		return true
	}

	entries, err := os.ReadDir(string(d))

	return err == nil && len(entries) == 1 && entries[0].Name() == lock
}

// Exists tells whether there is anything of a sandbox.
func (d Dir) Exists() bool {
	entries, err := os.ReadDir(string(d))

	return err == nil && len(entries) > 0
}
