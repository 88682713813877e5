// Package backend is the way to the planes: which address answers for a replica, with which certificates and keys, and
// which plane holds the buckets at the moment. It decides nothing about planes or buckets.
package backend

import (
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/plan"
)

// Connection is a plane that can take changes of buckets: all of them go through one and the same node.
type Connection struct {
	Plane string
	Store string // identity of the store: another one after the store was deleted and made again
	Admin *garage.Client
	S3    *s3.Client
	KeyID string // the plane's internal S3 key
	CA    string // PEM, what consumers have to trust
}

// Store is what is known of the store as a whole.
type Store struct {
	// Exists tells whether the plan has a plane at all.
	Exists bool
	// Ready is the verdict of the condition StorageReady.
	Ready plan.Verdict
	// Connection is nil while the store cannot take changes of buckets.
	Connection *Connection
}

// Board holds the last known Store; the plane reconciler writes it, the bucket reconciler reads it. Safe for concurrent
// use.
type Board struct {
	mu    sync.Mutex
	store *Store
	// suspended: what is known is not told.
	suspended bool
	left      string // the plane that the store has left
	wake      chan struct{}
}

// NewBoard is a board on which nothing is known yet.
func NewBoard() *Board { return &Board{wake: make(chan struct{}, 1)} }

// Wake tells that buckets have to look at the store again. Several changes may be told once.
func (b *Board) Wake() <-chan struct{} { return b.wake }

// Post writes what is known of the store.
func (b *Board) Post(store Store) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if store.Connection != nil && store.Connection.Plane == b.left {
		return // whoever posts it has not heard of the move yet
	}
	changed := b.store == nil || b.store.Exists != store.Exists || b.store.Ready != store.Ready ||
		(b.store.Connection == nil) != (store.Connection == nil)
	b.store = &store
	if changed {
		b.tellWake()
	}
}

func (b *Board) tellWake() {
	select {
	case b.wake <- struct{}{}:
	default: // somebody is about to look anyway
	}
}

// Suspend makes the store unknown until Resume, whatever is posted: buckets are to stay as they are.
func (b *Board) Suspend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.suspended = true
}

// Leave tells that the store is no more in the plane: connections to it are not taken any more. "" takes all again.
func (b *Board) Leave(plane string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = plane
}

// Resume ends Suspend. What was posted before is forgotten, since it may be of another plane.
func (b *Board) Resume() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.suspended {
		b.suspended, b.store = false, nil
		b.tellWake()
	}
}

// Clear makes the store unknown: nobody is to touch any bucket.
func (b *Board) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.store = nil
}

// Read is what is known of the store; false while nothing is: then nothing may be concluded either.
func (b *Board) Read() (Store, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.store == nil || b.suspended {
		return Store{}, false
	}
	return *b.store, true
}
