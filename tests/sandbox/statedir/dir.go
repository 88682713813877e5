// Package statedir knows where the sandbox keeps what: everything lies under one
// directory, so removing the sandbox ends with removing that directory.
package statedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// Variable is the environment variable that names the directory.
	Variable = "SANDBOX_DIR"
	fallback = "/var/lib/system-s3-sandbox"
	private  = 0o700
	mark     = ".system-s3-sandbox"
)

var errForeign = errors.New("the folder is not a sandbox's, choose another with " + Variable)

// Dir is the state directory, an absolute path without a trailing slash.
type Dir string

// Default is $SANDBOX_DIR, else the usual place.
func Default() Dir {
	if set := os.Getenv(Variable); set != "" {
		if abs, err := filepath.Abs(set); err == nil {
			return Dir(abs)
		}
	}

	return fallback
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

// Remove deletes the directory. Nothing may be mounted below any more.
func (d Dir) Remove() error {
	if !d.Exists() {
		return nil
	}

	if !d.ours() {
		return fmt.Errorf("%s: %w", d, errForeign)
	}

	if err := os.RemoveAll(string(d)); err != nil {
		return fmt.Errorf("delete the state directory: %w", err)
	}

	return nil
}

func (d Dir) ours() bool {
	_, err := os.Stat(d.Path(mark))

	return err == nil
}

// Exists tells whether there is anything of a sandbox.
func (d Dir) Exists() bool {
	_, err := os.Stat(string(d))

	return err == nil
}
