package artifact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/deckhouse/system-s3/tests/sandbox/process"
)

const (
	progressInterval = 15 * time.Second
	memoryInterval   = time.Second
	tailBytes        = 4000
	mebi             = 1 << 20
	// killGrace is how long the output of a build that was called off may stay open.
	killGrace = 5 * time.Second
)

var errNoTool = errors.New("it is neither in PATH nor where its installer puts it: install it first")

// run runs the build's command. What it prints goes to a log.
func (s *Store) run(ctx context.Context, a Artifact, command Command) error {
	path := ToolPath()

	tool, err := findTool(command.Args[0], path)
	if err != nil {
		return fmt.Errorf("build %s: %w", a.Name, err)
	}

	logs := filepath.Join(s.root, "logs")
	if err := os.MkdirAll(logs, folderMode); err != nil {
		return fmt.Errorf("make the folder of the logs: %w", err)
	}

	log, err := os.Create(filepath.Join(logs, a.Name+".log")) //nolint:gosec // the list of artifacts names the file
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", a.Name, err)
	}
	defer log.Close() //nolint:errcheck // only a log

	// Builds take what is left of the machine, never the machine.
	args := append([]string{tool}, command.Args[1:]...)
	cmd := exec.CommandContext(ctx, "nice", args...) //nolint:gosec // the list of artifacts says what to run; no shell between
	cmd.Dir, cmd.Stdout, cmd.Stderr = command.Dir, log, log
	cmd.Env = append(os.Environ(), append([]string{"PATH=" + path}, command.Env...)...)
	// A session of its own: so its memory can be counted, and all of it ends at once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace

	if err := s.watch(a, cmd); err != nil {
		return fmt.Errorf("%s %s: %w: %w\n%s(whole log: %s)", a.Name, a.Version, errBuild, err, tail(log.Name()), log.Name())
	}

	return nil
}

// watch runs the command and tells what is being built and for how long.
func (s *Store) watch(a Artifact, cmd *exec.Cmd) error {
	used := Usage{Name: a.Name, Version: a.Version}
	started := time.Now()
	line := func(what string) {
		used.Time = time.Since(started)
		fmt.Fprintf(s.progress, "%-8s %s\n", what, used) //nolint:errcheck // progress only
	}

	line("building")

	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the build: %w", err)
	}

	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	progress, memory := time.NewTicker(progressInterval), time.NewTicker(memoryInterval)
	defer progress.Stop()
	defer memory.Stop()

	for {
		select {
		case err := <-ended:
			line("ended")

			s.mutex.Lock()
			defer s.mutex.Unlock()

			s.builds = append(s.builds, used)

			return err
		case <-progress.C:
			line("building")
		case <-memory.C:
			if now, err := process.SessionMemory(cmd.Process.Pid); err == nil {
				used.Memory = max(used.Memory, now)
			}
		}
	}
}

// String is for people.
func (u Usage) String() string {
	return fmt.Sprintf("%s %s (%d s, %d MiB of memory at most)", u.Name, u.Version, int(u.Time.Seconds()), u.Memory/mebi)
}

// ToolPath is the PATH of builds: the caller's, then the folders where the installers
// of Go and Rust put them without telling the shells that run already.
func ToolPath() string {
	folders := filepath.SplitList(os.Getenv("PATH"))

	if home := os.Getenv("CARGO_HOME"); home != "" {
		folders = append(folders, filepath.Join(home, "bin"))
	}

	if home, err := os.UserHomeDir(); err == nil {
		folders = append(folders, filepath.Join(home, ".cargo", "bin"))
	}

	return strings.Join(append(folders, "/usr/local/go/bin", "/usr/lib/go/bin"), string(filepath.ListSeparator))
}

// findTool looks for a program in the folders of the path.
func findTool(name, path string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}

	for _, folder := range filepath.SplitList(path) {
		if folder == "" {
			continue // the working folder is not a place for tools
		}

		found := filepath.Join(folder, name)
		if info, err := os.Stat(found); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return found, nil
		}
	}

	return "", fmt.Errorf("%s: %w", name, errNoTool)
}

// tail is the end of a log, from the beginning of a line.
func tail(path string) string {
	data, err := fs.ReadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path))
	if err != nil || len(data) <= tailBytes {
		return string(data)
	}

	_, whole, _ := strings.Cut(string(data[len(data)-tailBytes:]), "\n")

	return whole
}
