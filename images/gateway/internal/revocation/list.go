// Package revocation holds the list of those whose keys are refused before their time. The controller pushes the whole
// list every minute; a gateway that was restarted has it again with the next push.
package revocation

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/deckhouse/system-s3/lib/access"
)

// MaxEntries bounds a list.
const MaxEntries = 100_000

// Entry is a right that was taken away: of a subject, on a bucket, for some permissions.
type Entry struct {
	Subject access.Tag `json:"subject"`
	// Bucket is the bucket's tag; all zeros are every bucket.
	Bucket access.Tag `json:"bucket"`
	// Permission is what was taken away; none is everything. A key that has any of it is refused as a whole.
	Permission access.Permission `json:"permission"`
	// Until is when the last key issued before has expired: the entry is void from then on.
	Until time.Time `json:"until"`
}

// List is safe for concurrent use. The zero value revokes nothing.
type List struct {
	current atomic.Pointer[map[access.Tag][]Entry]
}

// ErrRevoked is the answer to a revoked key. It is no ExpiredToken: SDKs would ask STS again at once, which has nothing
// for them, and a client that lost only a part of its right would never know.
var ErrRevoked = access.ErrDenied.With("The right that the key was issued for was taken away. STS issues a key for what is left of it.")

// Replace puts a list in place of the one before; a list with a nonsensical entry is refused as a whole.
func (l *List) Replace(entries []Entry) error {
	if len(entries) > MaxEntries {
		return fmt.Errorf("%d entries, at most %d are taken", len(entries), MaxEntries)
	}
	next := make(map[access.Tag][]Entry, len(entries))
	for i, entry := range entries {
		if entry.Subject == (access.Tag{}) || entry.Until.IsZero() || !access.ReadWrite.Covers(entry.Permission) {
			return fmt.Errorf("entry %d: %w", i, errEntry)
		}
		next[entry.Subject] = append(next[entry.Subject], entry)
	}
	l.current.Store(&next)
	return nil
}

var errEntry = errors.New("it needs a subject, a known permission and an end")

// Check is ErrRevoked for claims that the list revokes.
func (l *List) Check(claims access.Claims, now time.Time) error {
	current := l.current.Load()
	if current == nil {
		return nil
	}
	for _, entry := range (*current)[claims.Subject] {
		if entry.covers(claims) && now.Before(entry.Until) {
			return ErrRevoked
		}
	}
	return nil
}

func (e Entry) covers(claims access.Claims) bool {
	return (e.Bucket == access.Tag{} || e.Bucket == claims.BucketTag) &&
		(e.Permission == 0 || e.Permission&claims.Permission != 0)
}

// Len is the number of subjects on the list.
func (l *List) Len() int {
	if current := l.current.Load(); current != nil {
		return len(*current)
	}
	return 0
}
