package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

// Names of the environment variables that mark a process and all its children.
const (
	markVariable  = "SYSTEM_S3_SANDBOX"
	groupVariable = "SYSTEM_S3_SANDBOX_GROUP"
)

const pollInterval = 20 * time.Millisecond

// Table is the set of processes of one sandbox.
type Table struct {
	dir statedir.Dir
}

// NewTable returns the processes of the sandbox in dir.
func NewTable(dir statedir.Dir) Table {
	return Table{dir: dir}
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
	// Group joins processes that end together, such as those of one node.
	Group string
}

// Start starts the process unless it runs already, and returns without waiting
// for it to be ready. The process outlives the caller.
func (t Table) Start(ctx context.Context, s Spec) error {
	r, found, err := t.Find(s.Name)
	if err != nil {
		return err
	}

	if found && r.Alive() {
		return nil
	}

	log, err := os.OpenFile(t.dir.Log(s.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", s.Name, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own descriptor

	cmd := t.command(ctx, s)
	cmd.Stdout, cmd.Stderr = log, log

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

	return t.write(Record{Name: s.Name, PID: cmd.Process.Pid, StartTime: started.startTime, Args: s.Args})
}

func (t Table) command(ctx context.Context, s Spec) *exec.Cmd {
	args := s.Args
	if s.Namespace != "" {
		// Not "ip netns exec": that one mounts /sys anew and hides the cgroups.
		args = append([]string{"nsenter", "--net=/run/netns/" + s.Namespace, "--"}, args...)
	}

	// The process is meant to outlive the command: its context must not end it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), args[0], args[1:]...)
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

// Stop asks the process to end, kills it after the grace, and forgets it.
// Stopping what does not run is not an error.
func (t Table) Stop(ctx context.Context, name string, grace time.Duration) error {
	r, found, err := t.Find(name)
	if err != nil {
		return err
	}

	if found && r.Alive() {
		if err := end(ctx, r, grace); err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
	}

	if err := os.Remove(t.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget %s: %w", name, err)
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
