// Package process starts the sandbox's processes detached from the command line
// and ends them again: only its own, told apart by process id and start time and
// by a mark in the environment that children inherit.
package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Record says which process was started under a name. The pair of id and start
// time is unique until the machine restarts, an id alone is not.
type Record struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// StartTime is field 22 of /proc/<pid>/stat: ticks since the machine's start.
	StartTime uint64   `json:"startTime"`
	Args      []string `json:"args"`
	// Started is when the process was started; zero when that is not known.
	Started time.Time `json:"started,omitzero"`
	// Fingerprint sums up what was started; empty when that is not known.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// Fields of /proc/<pid>/stat, counted from the one after the name in parentheses.
const (
	statState     = 0
	statSession   = 3
	statThreads   = 17
	statStartTime = 19
	statResident  = 21
)

var errStat = errors.New("unexpected content")

// stat is what the sandbox needs of /proc/<pid>/stat.
type stat struct {
	state     string
	session   int
	threads   int
	startTime uint64
	resident  int64 // pages of memory
}

// ended tells whether the process only waits to be collected. While one of its
// threads is not through, its files are open and what it has mounted is in use.
func (s stat) ended() bool { return (s.state == "Z" || s.state == "X") && s.threads <= 1 }

// parseStat reads the text of /proc/<pid>/stat. The name of the program may hold
// spaces and parentheses, hence the search for the last one.
func parseStat(text string) (stat, error) {
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return stat{}, fmt.Errorf("parse stat: %w", errStat)
	}

	fields := strings.Fields(text[end+1:])
	if len(fields) <= statResident {
		return stat{}, fmt.Errorf("parse stat: %w", errStat)
	}

	s := stat{state: fields[statState]}

	for _, field := range []struct {
		index int
		into  any
	}{{statSession, &s.session}, {statThreads, &s.threads}, {statStartTime, &s.startTime}, {statResident, &s.resident}} {
		if _, err := fmt.Sscan(fields[field.index], field.into); err != nil {
			return stat{}, fmt.Errorf("parse field %d of stat: %w", field.index, err)
		}
	}

	return s, nil
}

func readStat(pid int) (stat, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, fmt.Errorf("read stat: %w", err)
	}

	return parseStat(string(text))
}

// Alive tells whether the very process of the record still runs. A process that
// has ended and waits to be collected counts as ended.
func (r Record) Alive() bool {
	s, err := readStat(r.PID)

	return err == nil && s.startTime == r.StartTime && !s.ended()
}

func (t Table) path(name string) string {
	return filepath.Join(t.dir.Records(), name+".json")
}

// Find returns the record of a name; false when nothing was started under it.
func (t Table) Find(name string) (Record, bool, error) {
	data, err := fs.ReadFile(os.DirFS(t.dir.Records()), name+".json")
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}

	if err != nil {
		return Record{}, false, fmt.Errorf("read the record of %s: %w", name, err)
	}

	var r Record
	// A record that makes no sense is the same as none: the mark still finds the process.
	readable := json.Unmarshal(data, &r) == nil

	return r, readable, nil
}

// All returns the records in the order of their names.
func (t Table) All() ([]Record, error) {
	paths, err := filepath.Glob(filepath.Join(t.dir.Records(), "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list the records: %w", err)
	}

	records := make([]Record, 0, len(paths))

	for _, path := range paths {
		r, found, err := t.Find(strings.TrimSuffix(filepath.Base(path), ".json"))
		if err != nil {
			return nil, err
		}

		if found {
			records = append(records, r)
		}
	}

	return records, nil
}

func (t Table) write(r Record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the record of %s: %w", r.Name, err)
	}

	if err := os.WriteFile(t.path(r.Name)+".new", data, 0o600); err != nil {
		return fmt.Errorf("write the record of %s: %w", r.Name, err)
	}

	if err := os.Rename(t.path(r.Name)+".new", t.path(r.Name)); err != nil {
		return fmt.Errorf("write the record of %s: %w", r.Name, err)
	}

	return nil
}
