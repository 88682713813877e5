package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	startLimit = time.Minute
	stopLimit  = 20 * time.Second
	startTick  = 20 * time.Millisecond
	// clockTick is what the kernel counts CPU time in: USER_HZ, 100 on every Linux.
	clockTick = 10 * time.Millisecond
)

// process is a program that runs until the test ends.
type process struct {
	*os.Process

	mu   sync.Mutex
	told bytes.Buffer
}

// Write keeps what the program tells.
func (p *process) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told.Write(data)
}

func (p *process) output() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.told.Bytes())
}

func start(t testing.TB, name string, args ...string) *process {
	t.Helper()
	return startWith(t, nil, name, args...)
}

// startWith adds to the environment. What the program tells is shown when the test failed.
func startWith(t testing.TB, environment []string, name string, args ...string) *process {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	p := &process{}
	cmd.Stdout, cmd.Stderr = p, p
	cmd.Env = append(os.Environ(), environment...)
	// A killed run leaves nothing behind.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	p.Process = cmd.Process
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // its end is asked for by a signal
	}()
	t.Cleanup(func() {
		_ = p.Signal(syscall.SIGTERM) // fails only when the process is gone
		select {
		case <-exited:
		case <-time.After(stopLimit):
			_ = p.Kill() // fails only when the process is gone
			<-exited
		}
		if t.Failed() {
			t.Logf("%s told:\n%s", filepath.Base(name), p.output())
		}
	})
	return p
}

// run runs a program to its end.
func run(t testing.TB, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), out)
}

func freeAddress(t testing.TB) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}

func waitListening(t testing.TB, address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, startLimit, startTick, address)
}

// cpuTime is what the process and its children that still live have used.
func cpuTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	total := ownCPUTime(t, pid)
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	require.NoError(t, err)
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		require.NoError(t, err)
		for child := range strings.FieldsSeq(string(children)) {
			id, err := strconv.Atoi(child)
			require.NoError(t, err)
			total += cpuTime(t, id)
		}
	}
	return total
}

func ownCPUTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(data), ") ") // the name may hold anything
	fields := strings.Fields(rest)
	const user, system = 11, 12
	var ticks int64
	for _, field := range []int{user, system} {
		n, err := strconv.ParseInt(fields[field], 10, 64)
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}
