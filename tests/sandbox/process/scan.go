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

// killGrace bounds the wait for killed processes: one that writes to a slow disk goes
// only when the disk lets it.
const killGrace = 30 * time.Second

var errStays = errors.New("does not end")

// KillGroup kills every process that bears the mark of the group, with all the
// children that inherited it, and returns when they are gone. An empty group
// means every process of the sandbox. The caller's own process is spared.
func (t Table) KillGroup(ctx context.Context, group string) error {
	marks := t.marks(group)

	return Kill(ctx, func(pid int) bool { return marked(pid, marks) })
}

// Any tells whether any process bears the sandbox's mark.
func (t Table) Any() (bool, error) {
	marks := t.marks("")

	pids, err := find(func(pid int) bool { return marked(pid, marks) })

	return len(pids) > 0, err
}

// marks are what the environment of a process of the group holds; of any process of
// the sandbox when the group is empty.
func (t Table) marks(group string) [][]byte {
	marks := [][]byte{[]byte(markVariable + "=" + string(t.dir))}
	if group != "" {
		marks = append(marks, []byte(groupVariable+"="+group))
	}

	return marks
}

// SessionMemory is the memory in bytes that the processes of a session hold together;
// what they share counts for each.
func SessionMemory(session int) (int64, error) {
	pids, err := find(func(pid int) bool {
		s, err := readStat(pid)

		return err == nil && s.session == session
	})
	if err != nil {
		return 0, err
	}

	var pages int64

	for _, pid := range pids {
		if s, err := readStat(pid); err == nil {
			pages += s.resident
		}
	}

	return pages * int64(os.Getpagesize()), nil
}

// Kill kills all processes that the selection holds for, again and again until
// there are none: they may start children while we look. It returns when they are
// through with ending: what they had open or mounted is free then. The caller is spared.
func Kill(ctx context.Context, selected func(pid int) bool) error {
	ctx, cancel := context.WithTimeout(ctx, killGrace)
	defer cancel()

	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()

	// A process that is ending loses its marks before it lets go of its files.
	victims := map[int]uint64{}

	for {
		left, err := strike(selected, victims)
		if err != nil || len(left) == 0 {
			return err
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("processes %v: %w", left, errStays)
		case <-ticker.C:
		}
	}
}

// strike kills those that the selection holds for, adds them to the victims (process
// id to start time), and lists the victims that are not through with ending.
func strike(selected func(pid int) bool, victims map[int]uint64) ([]int, error) {
	found, err := find(selected)
	if err != nil {
		return nil, err
	}

	for _, pid := range found {
		s, err := readStat(pid)
		if err != nil {
			continue // ended meanwhile
		}

		if err := signal(pid, syscall.SIGKILL); err != nil {
			return nil, err
		}

		victims[pid] = s.startTime
	}

	var left []int

	for pid, started := range victims {
		if (Record{PID: pid, StartTime: started}).Alive() {
			left = append(left, pid)
		}
	}

	return left, nil
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

		if s, err := readStat(pid); err == nil && !s.ended() && selected(pid) {
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
