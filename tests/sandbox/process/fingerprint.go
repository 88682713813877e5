package process

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// fingerprint sums up all that decides how a process of the spec behaves: what its
// program and its configuration files hold, its arguments, its environment. Paths and
// times alone would not do: a program is built anew at the same path, and building
// the same once more changes only the time.
func (t Table) fingerprint(s Spec) (string, error) {
	program, err := exec.LookPath(s.Args[0])
	if err != nil {
		return "", fmt.Errorf("find the program of %s: %w", s.Name, err)
	}

	sum := sha256.New()

	for _, path := range append([]string{program}, s.Reads...) {
		content, err := t.content(path)
		if err != nil {
			return "", fmt.Errorf("read what %s is made of: %w", s.Name, err)
		}

		sum.Write([]byte(content))
	}

	fmt.Fprintf(sum, "%q %q %q", s.Args, s.Env, s.Namespace) //nolint:errcheck // a hash does not fail

	return hex.EncodeToString(sum.Sum(nil)), nil
}

// content is the digest of a file. One table reads a file once: the programs are
// large, and one of them is that of many processes.
func (t Table) content(path string) (string, error) {
	if known, ok := t.contents.Load(path); ok {
		return known.(string), nil
	}

	file, err := os.Open(path) //nolint:gosec // programs and configurations that the sandbox itself starts
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, err)
	}
	defer file.Close() //nolint:errcheck // only read

	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}

	digest := string(sum.Sum(nil))
	t.contents.Store(path, digest)

	return digest, nil
}

// current tells whether the process of the record is what a start of the spec would
// give. A record without a fingerprint is of an older sandbox or of a process that
// was found running: its arguments decide.
func (r Record) current(s Spec, fingerprint string) bool {
	if r.Fingerprint == "" {
		return slices.Equal(r.Args, s.Args)
	}

	return r.Fingerprint == fingerprint
}

// adopt writes the record of a process that runs without one: an earlier command was
// killed right after it had started the process. It tells whether there was one.
func (t Table) adopt(s Spec) (Record, bool, error) {
	marks := t.marks(s.Group)

	pids, err := find(func(pid int) bool { return marked(pid, marks) && slices.Equal(arguments(pid), s.Args) })
	if err != nil || len(pids) == 0 {
		return Record{}, false, err
	}

	r := Record{Name: s.Name, PID: pids[0], Args: s.Args}

	started, err := readStat(r.PID)
	if err != nil {
		return Record{}, false, nil //nolint:nilerr // it ended just now: nothing to adopt
	}

	r.StartTime = started.startTime

	return r, true, t.write(r)
}

// arguments are the program and the arguments of a process; none when it has ended.
func arguments(pid int) []string {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return nil
	}

	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
}
