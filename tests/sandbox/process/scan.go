package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const killGrace = 10 * time.Second

var errStays = errors.New("does not end")

// KillGroup kills every process that bears the mark of the group, with all the
// children that inherited it, and returns when they are gone. An empty group
// means every process of the sandbox. The caller's own process is spared.
func (t Table) KillGroup(ctx context.Context, group string) error {
	marks := [][]byte{[]byte(markVariable + "=" + string(t.dir))}
	if group != "" {
		marks = append(marks, []byte(groupVariable+"="+group))
	}

	return Kill(ctx, func(pid int) bool { return marked(pid, marks) })
}

// Kill kills all processes that the selection holds for, again and again until
// there are none: they may start children while we look. The caller is spared.
func Kill(ctx context.Context, selected func(pid int) bool) error {
	ctx, cancel := context.WithTimeout(ctx, killGrace)
	defer cancel()

	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()

	for {
		left, err := find(selected)
		if err != nil || len(left) == 0 {
			return err
		}

		for _, pid := range left {
			if err := signal(pid, syscall.SIGKILL); err != nil {
				return err
			}
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("processes %v: %w", left, errStays)
		case <-ticker.C:
		}
	}
}

// find lists the living processes that the selection holds for.
func find(selected func(pid int) bool) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}

	var pids []int

	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}

		if s, err := readStat(pid); err == nil && s.state != "Z" && s.state != "X" && selected(pid) {
			pids = append(pids, pid)
		}
	}

	return pids, nil
}

func marked(pid int, marks [][]byte) bool {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}

	found := 0

	for _, variable := range bytes.Split(data, []byte{0}) {
		for _, mark := range marks {
			if bytes.Equal(variable, mark) {
				found++
			}
		}
	}

	return found == len(marks)
}
