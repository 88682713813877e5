package load

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// absent is the version of a key that is not there: never written, or deleted.
const absent = 0

// entry is what is known of one key. A key has one writer, so what was acknowledged last is what must be there.
type entry struct {
	sizes   []int // of the versions that were ever sent, the first of them is version 1
	settled int   // the version that was acknowledged last
	doubt   int   // the version that an operation without a known outcome wanted to bring about
	doubted bool  // there is such an operation; nobody touches the key any more
	told    bool  // a finding about it was told
}

// allows tells whether the version may be found.
func (e entry) allows(version int) bool {
	return version == e.settled || e.doubted && version == e.doubt
}

// ledger holds what was acknowledged. An operation is written down before it is sent: whatever happens to it, what it
// may bring about is known.
type ledger struct {
	mu      sync.Mutex
	entries map[string]entry
}

func newLedger() *ledger { return &ledger{entries: map[string]entry{}} }

// write takes down that a new version of the key is about to be sent, and returns its number.
func (l *ledger) write(key string, size int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	e.sizes = append(slices.Clip(e.sizes), size)
	e.doubt, e.doubted = len(e.sizes), true
	l.entries[key] = e
	return e.doubt
}

// remove takes down that the key is about to be deleted.
func (l *ledger) remove(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	e.doubt, e.doubted = absent, true
	l.entries[key] = e
}

// acknowledge settles the operation that is on its way.
func (l *ledger) acknowledge(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	e.settled, e.doubted = e.doubt, false
	l.entries[key] = e
}

// refuse takes down that the operation on its way surely changed nothing.
func (l *ledger) refuse(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	e.doubted = false
	l.entries[key] = e
}

func (l *ledger) read(key string) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[key]
}

// keys in order.
func (l *ledger) keys() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.entries))
}

// tell keeps a finding about the key from being told twice.
func (l *ledger) tell(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	e.told = true
	l.entries[key] = e
}

// Kind of a finding.
type Kind string

// What can be wrong with a store.
const (
	Lost        Kind = "lost"        // an acknowledged write is not there, or an older version is
	Wrong       Kind = "wrong"       // bytes that nobody wrote, under this key or at all
	Resurrected Kind = "resurrected" // what was deleted is there again
	Unreadable  Kind = "unreadable"  // nobody knows: the store does not answer for it
)

// Finding is something that is not as it was acknowledged.
type Finding struct {
	Kind  Kind
	Key   string
	Story string // what was expected and what was found
	Phase string // in which it was found
	At    time.Time
}

// String is the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s %s: %s (found at %s in %s)", f.Kind, f.Key, f.Story, f.At.UTC().Format(time.TimeOnly), f.Phase)
}

// found is what a read of a key brought.
type found struct {
	body   []byte
	exists bool
}

// judge compares what was found with what was acknowledged; nil when all is well.
func (e entry) judge(seed uint64, key string, f found) *Finding {
	version := absent
	if f.exists {
		version = recognise(seed, key, e.sizes, f.body)
	}
	switch {
	case e.told:
		return nil
	case f.exists && version == absent:
		return &Finding{Kind: Wrong, Key: key, Story: fmt.Sprintf("%s was acknowledged, %d bytes are there that are no version of it", name(e.settled), len(f.body))}
	case e.allows(version):
		return nil
	case f.exists && e.settled == absent:
		return &Finding{Kind: Resurrected, Key: key, Story: fmt.Sprintf("its deletion was acknowledged, %s is there", name(version))}
	case version > e.settled:
		return &Finding{Kind: Wrong, Key: key, Story: fmt.Sprintf("%s was refused and is there all the same", name(version))}
	default:
		return &Finding{Kind: Lost, Key: key, Story: fmt.Sprintf("%s was acknowledged, %s is there", name(e.settled), name(version))}
	}
}

// listed compares a listing with what was acknowledged; nil when all is well.
func (e entry) listed(key string, there bool) *Finding {
	mayExist := e.settled != absent || e.doubted && e.doubt != absent
	switch {
	case e.told:
		return nil
	case there && len(e.sizes) == 0:
		return &Finding{Kind: Wrong, Key: key, Story: "nobody wrote it and it is listed"}
	case there && !mayExist:
		return &Finding{Kind: Resurrected, Key: key, Story: "its deletion was acknowledged and it is listed"}
	case !there && !e.allows(absent):
		return &Finding{Kind: Lost, Key: key, Story: name(e.settled) + " was acknowledged and it is not listed"}
	}
	return nil
}

func name(version int) string {
	if version == absent {
		return "nothing"
	}
	return fmt.Sprintf("version %d", version)
}
