// Package journal remembers which objects writes may have changed, for whoever copies the store. It lives in memory
// alone: a gateway that was restarted has none and says so.
package journal

import (
	"cmp"
	"errors"
	"slices"
	"sync"
)

const (
	maxNames = 8 << 20 // bytes of names that are kept
	maxPage  = 5000
)

// ErrUnknown means that there is no journal of that id.
var ErrUnknown = errors.New("there is no such journal")

// Object is what a write may have changed.
type Object struct {
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
}

// Entry is an object with the place of the newest write to it among all.
type Entry struct {
	Object

	Sequence int64 `json:"sequence"`
}

// Page is what a journal has after a sequence.
type Page struct {
	ID       string  `json:"id"`
	Last     int64   `json:"last"`
	Overflow bool    `json:"overflow"` // entries are missing, for good
	More     bool    `json:"more"`     // entries that are not on this page
	Entries  []Entry `json:"entries"`
}

// Journal keeps nothing until it begins. Safe for concurrent use.
type Journal struct {
	mu       sync.Mutex
	id       string // empty when nothing is kept
	last     int64
	names    int
	overflow bool
	newest   map[Object]int64
}

// Begin keeps what is written from now on. The journal of the same id goes on, that of another one ends.
func (j *Journal) Begin(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.id == id {
		return
	}
	j.reset(id)
}

// End forgets everything.
func (j *Journal) End() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reset("")
}

func (j *Journal) reset(id string) {
	j.id, j.last, j.names, j.overflow, j.newest = id, 0, 0, false, map[Object]int64{}
}

// Record notes objects, each at its newest place only.
func (j *Journal) Record(objects ...Object) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.id == "" || j.overflow {
		return
	}
	for _, o := range objects {
		if _, noted := j.newest[o]; !noted {
			j.names += size(o)
		}
		if j.names > maxNames {
			j.overflow, j.names, j.newest = true, 0, nil
			return
		}
		j.last++
		j.newest[o] = j.last
	}
}

func size(o Object) int { return len(o.Bucket) + len(o.Key) }

// Read tells the oldest entries after the sequence and forgets those up to it: the reader is done with them.
func (j *Journal) Read(id string, after int64) (Page, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if id == "" || j.id != id {
		return Page{}, ErrUnknown
	}
	page := Page{ID: id, Last: j.last, Overflow: j.overflow, Entries: []Entry{}}
	for o, sequence := range j.newest {
		if sequence <= after {
			j.names -= size(o)
			delete(j.newest, o)
			continue
		}
		page.Entries = append(page.Entries, Entry{Object: o, Sequence: sequence})
	}
	slices.SortFunc(page.Entries, func(a, b Entry) int { return cmp.Compare(a.Sequence, b.Sequence) })
	if page.More = len(page.Entries) > maxPage; page.More {
		page.Entries = slices.Clone(page.Entries[:maxPage])
	}
	return page, nil
}
