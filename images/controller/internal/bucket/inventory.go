package bucket

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/garage"
)

const (
	// listPage is how many buckets Garage tells at once. A question about one bucket costs Garage as much as a page.
	listPage = 500
	// inventoryAge is how old the inventory may be for a pass: a sweep that was missed makes the pass list anew.
	inventoryAge = 2 * sweepInterval
)

// Inventory is what Garage last said of all buckets, and what was changed since. With it a pass over thousands of
// SystemBuckets asks Garage a few questions instead of one for each. Safe for concurrent use.
type Inventory struct {
	// Age is how old it may be.
	Age time.Duration
	// Now is the clock.
	Now func() time.Time

	listing sync.Mutex // one list at a time

	mu      sync.Mutex
	store   string // and plane, that the buckets are of
	taken   time.Time
	buckets map[string]garage.Bucket // by id
	noted   map[string]time.Time     // when a bucket was changed, by id
}

// NewInventory is one of which nothing is known yet.
func NewInventory() *Inventory { return &Inventory{Age: inventoryAge, Now: time.Now} }

// take lists all buckets, and returns them by id.
func (i *Inventory) take(ctx context.Context, c *backend.Connection) (map[string]garage.Bucket, error) {
	i.listing.Lock()
	defer i.listing.Unlock()
	if err := i.refill(ctx, c); err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.buckets), nil
}

// refill replaces everything but what was changed while Garage was listing.
func (i *Inventory) refill(ctx context.Context, c *backend.Connection) error {
	begun := i.Now()
	buckets, err := list(ctx, c.Admin)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	newer := map[string]time.Time{}
	for id, when := range i.noted {
		if i.store == identity(c) && when.After(begun) {
			buckets[id], newer[id] = i.buckets[id], when
		}
	}
	i.store, i.taken, i.buckets, i.noted = identity(c), begun, buckets, newer
	return nil
}

// bucket is the bucket with the id. One that is not known may exist all the same.
func (i *Inventory) bucket(ctx context.Context, c *backend.Connection, id string) (found garage.Bucket, known bool, err error) {
	if found, known, fresh := i.find(c, id); fresh {
		return found, known, nil
	}
	i.listing.Lock()
	defer i.listing.Unlock()
	if found, known, fresh := i.find(c, id); fresh {
		return found, known, nil
	}
	if err := i.refill(ctx, c); err != nil {
		return garage.Bucket{}, false, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	found, known = i.buckets[id]
	return found, known, nil
}

func (i *Inventory) find(c *backend.Connection, id string) (found garage.Bucket, known, fresh bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	found, known = i.buckets[id]
	return found, known, i.store == identity(c) && i.Now().Sub(i.taken) < i.Age
}

// note remembers what a change has made of a bucket.
func (i *Inventory) note(c *backend.Connection, bucket garage.Bucket) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.store == identity(c) {
		i.buckets[bucket.ID], i.noted[bucket.ID] = bucket, i.Now()
	}
}

func identity(c *backend.Connection) string { return c.Plane + " " + c.Store }

// list reads all buckets of Garage, by id.
func list(ctx context.Context, admin *garage.Client) (map[string]garage.Bucket, error) {
	buckets, from := map[string]garage.Bucket{}, ""
	for {
		got, err := admin.ListBucketsInfo(ctx, from, listPage)
		if err != nil {
			return nil, err
		}
		before := len(buckets)
		for _, bucket := range got {
			buckets[bucket.ID] = bucket
			from = bucket.ID
		}
		// A page begins with the last bucket of the page before.
		if len(got) < listPage || len(buckets) == before {
			return buckets, nil
		}
	}
}
