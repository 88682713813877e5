// Package revocation takes back keys before their time. Every replica writes down to whom it has issued keys that still
// live, in one ConfigMap for all of them; the leader asks RBAC about those again and again and tells the gateways who
// has lost a right. Neither tokens nor keys are kept: only whom to ask about.
package revocation

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/sts"
)

// maxHoldings bounds what a replica remembers; each takes about a kilobyte. Only who has a right gets a key, so strangers
// cannot fill it.
const maxHoldings = 20_000

// Holding is a ServiceAccount with keys of a bucket that may still live.
type Holding struct {
	User       string              `json:"user"`
	UID        string              `json:"uid,omitempty"`
	Groups     []string            `json:"groups,omitempty"`
	Extra      map[string][]string `json:"extra,omitempty"`
	Namespace  string              `json:"namespace"`  // of the SystemBucket
	Name       string              `json:"name"`       // of the SystemBucket
	Bucket     string              `json:"bucket"`     // in S3
	Permission access.Permission   `json:"permission"` // all that any of the keys may do
	Until      time.Time           `json:"until"`      // by then all of them have expired
}

type holder struct{ user, bucket string }

func (h Holding) holder() holder { return holder{h.User, h.Bucket} }

func (h Holding) identity() sts.Identity {
	return sts.Identity{Username: h.User, UID: h.UID, Groups: h.Groups, Extra: h.Extra}
}

func (h Holding) role() access.Role {
	return access.Role{Namespace: h.Namespace, Name: h.Name, Permission: h.Permission}
}

// merge is both as one: the identity is that of the newer keys.
func merge(one, other Holding) Holding {
	if other.Until.Before(one.Until) {
		one, other = other, one
	}
	other.Permission |= one.Permission
	return other
}

// Ledger is what one replica has issued. Use NewLedger. It is safe for concurrent use.
type Ledger struct {
	slot time.Duration
	now  func() time.Time

	mu      sync.Mutex
	known   map[holder]Holding // written down or about to be
	fresh   map[holder]Holding // to be written down
	dropped int                // since the last take
}

// NewLedger is empty. Ends of lives are rounded up to the slot, so that a client that asks for keys all the time is
// written down once in a slot.
func NewLedger(slot time.Duration, now func() time.Time) *Ledger {
	return &Ledger{slot: slot, now: now, known: map[holder]Holding{}, fresh: map[holder]Holding{}}
}

// Note remembers to whom a key was issued.
func (l *Ledger) Note(issued sts.Issued) {
	h := Holding{
		User: issued.Identity.Username, UID: issued.Identity.UID, Groups: issued.Identity.Groups, Extra: issued.Identity.Extra,
		Namespace: issued.Namespace, Name: issued.Name, Bucket: issued.Bucket,
		Permission: issued.Permission, Until: issued.Expires.Truncate(l.slot).Add(l.slot),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.known[h.holder()]
	if ok && known.Permission.Covers(h.Permission) && !known.Until.Before(h.Until) {
		return
	}
	if ok {
		h = merge(known, h)
	} else if len(l.known) >= maxHoldings {
		l.dropped++
		return
	}
	l.known[h.holder()], l.fresh[h.holder()] = h, h
}

// take is what is to be written down, and how many could not be remembered since the last time.
func (l *Ledger) take() ([]Holding, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	maps.DeleteFunc(l.known, func(_ holder, h Holding) bool { return !now.Before(h.Until) })
	fresh, dropped := slices.Collect(maps.Values(l.fresh)), l.dropped
	clear(l.fresh)
	l.dropped = 0
	return fresh, dropped
}

// giveBack is for what could not be written down.
func (l *Ledger) giveBack(holdings []Holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range holdings {
		if newer, ok := l.fresh[h.holder()]; ok {
			h = merge(h, newer)
		}
		l.fresh[h.holder()] = h
	}
}
