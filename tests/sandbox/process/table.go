package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

// Names of the environment variables that mark a process and all its children.
const (
	markVariable  = "SYSTEM_S3_SANDBOX"
	groupVariable = "SYSTEM_S3_SANDBOX_GROUP"
)

const (
	pollInterval = 20 * time.Millisecond
	// restartGrace is how long a process may take to end that is started anew.
	restartGrace = 20 * time.Second
)

// Table is the set of processes of one sandbox.
type Table struct {
	dir      statedir.Dir
	progress io.Writer
	contents *sync.Map // path of a file to the digest of what it holds
}

// NewTable returns the processes of the sandbox in dir. What is done to them unasked
// is told to progress.
func NewTable(dir statedir.Dir, progress io.Writer) Table {
	return Table{dir: dir, progress: progress, contents: &sync.Map{}}
}

// Spec describes a process to start.
type Spec struct {
	// Name is unique in the sandbox; it names the record and the log file.
	Name string
	// Args is the program and its arguments.
	Args []string
	// Namespace is the network namespace to run in; empty is the machine's own.
	Namespace string
	// Env is added to the little that every process gets (PATH, HOME).
	Env []string
	// Reads are the configuration files that the process reads only when it starts.
	Reads []string
	// Group joins processes that end together, such as those of one node.
	Group string
}

// Start starts the process unless it runs already, and returns without waiting
// for it to be ready. One that runs an older program, or with other arguments or
// another configuration, is ended and started anew. The process outlives the caller.
func (t Table) Start(ctx context.Context, s Spec) error {
	fingerprint, err := t.fingerprint(s)
	if err != nil {
		return err
	}

	r, alive, err := t.running(s)
	if err != nil {
		return err
	}

	if alive && r.current(s, fingerprint) {
		return nil
	}

	if alive {
		fmt.Fprintf(t.progress, "restarting %s: its program, flags or configuration changed\n", s.Name) //nolint:errcheck // progress only

		if err := t.Stop(ctx, s.Name, restartGrace); err != nil {
			return err
		}
	}

	return t.launch(ctx, s, fingerprint)
}

// running finds the process of the name, with a record or without; false when it
// does not run.
func (t Table) running(s Spec) (Record, bool, error) {
	r, found, err := t.Find(s.Name)
	if err != nil || found && r.Alive() {
		return r, err == nil, err
	}

	return t.adopt(s)
}

func (t Table) launch(ctx context.Context, s Spec, fingerprint string) error {
	log, err := os.OpenFile(t.dir.Log(s.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", s.Name, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own descriptor

	cmd := t.command(ctx, s)
	cmd.Stdout, cmd.Stderr = log, log
	r := Record{Name: s.Name, Args: s.Args, Started: time.Now(), Fingerprint: fingerprint}

	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}

	// Collect it when it ends while we are still here: otherwise it stays as a
	// zombie, which looks alive to others.
	go func() { _ = cmd.Wait() }()

	started, err := readStat(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("%s ended at once, see %s: %w", s.Name, t.dir.Log(s.Name), err)
	}

	r.PID, r.StartTime = cmd.Process.Pid, started.startTime

	return t.write(r)
}

func (t Table) command(ctx context.Context, s Spec) *exec.Cmd {
	args := s.Args
	if s.Namespace != "" {
		// Not "ip netns exec": that one mounts /sys anew and hides the cgroups.
		args = append([]string{"nsenter", "--net=/run/netns/" + s.Namespace, "--"}, args...)
	}

	// The process is meant to outlive the command: its context must not end it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), args[0], args[1:]...) //nolint:gosec // the sandbox's own programs, no shell between
	cmd.Dir = string(t.dir)
	cmd.Env = append([]string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + string(t.dir),
		markVariable + "=" + string(t.dir),
		groupVariable + "=" + s.Group,
	}, s.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}

	return cmd
}

// Stop forgets the process, asks it to end and kills it after the grace. Whoever looks
// at the records to start again what has ended by itself thus leaves it alone.
// Stopping what does not run is not an error.
func (t Table) Stop(ctx context.Context, name string, grace time.Duration) error {
	r, found, err := t.Find(name)
	if err != nil {
		return err
	}

	if err := os.Remove(t.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget %s: %w", name, err)
	}

	if !found || !r.Alive() {
		return nil
	}

	if err := end(ctx, r, grace); err != nil {
		return fmt.Errorf("stop %s: %w", name, err)
	}

	return nil
}

func end(ctx context.Context, r Record, grace time.Duration) error {
	if err := signal(r.PID, syscall.SIGTERM); err != nil {
		return err
	}

	if gone(ctx, r, grace) {
		return nil
	}

	if err := signal(r.PID, syscall.SIGKILL); err != nil {
		return err
	}

	if !gone(ctx, r, killGrace) {
		return fmt.Errorf("process %d: %w", r.PID, errStays)
	}

	return nil
}

// gone waits until the process has ended, at most for the given time.
func gone(ctx context.Context, r Record, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()

	for r.Alive() {
		select {
		case <-ctx.Done():
			return !r.Alive()
		case <-ticker.C:
		}
	}

	return true
}

func signal(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process %d: %w", pid, err)
	}

	return nil
}
