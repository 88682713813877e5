package bucket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/smithy-go"
	"golang.org/x/sync/semaphore"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/names"
)

const (
	// removals is how many buckets are emptied at once: fewer than there are workers, so that a new bucket never waits
	// for old ones to go.
	removals = 2
	// slice is how long a bucket is emptied before the status tells how far it is.
	slice = 10 * time.Second
)

// Remover deletes buckets with everything in them, a slice at a time. Safe for concurrent use.
type Remover struct {
	turns *semaphore.Weighted

	mu     sync.Mutex
	places map[string]string // by id: objects up to this key are gone, as far as this process knows
}

// NewRemover is a Remover with all its turns free.
func NewRemover() *Remover {
	return &Remover{turns: semaphore.NewWeighted(removals), places: map[string]string{}}
}

// outcome of a slice.
type outcome int

const (
	gone   outcome = iota // the bucket does not exist any more
	more                  // there is more to do
	queued                // other buckets go first
)

// step deletes what a slice of time allows of the bucket with the wish's id, begin having been told what is left. What
// is done stays done: any other process goes on from there.
func (r *Remover) step(ctx context.Context, c *backend.Connection, w wish, begin func(garage.Bucket) error) (outcome, error) {
	if !r.turns.TryAcquire(1) {
		return queued, nil
	}
	defer r.turns.Release(1)
	bucket, err := c.Admin.GetBucketByID(ctx, w.ID)
	if garage.IsAbsent(err) {
		r.forget(w.ID)
		return gone, nil
	}
	if err != nil {
		return more, err
	}
	if err := begin(bucket); err != nil {
		return more, err
	}
	if err := withdraw(ctx, c, bucket, w); err != nil {
		return more, err
	}
	e := &emptying{client: c.S3, bucket: names.RemovedBucket(w.ID), after: r.place(w.ID)}
	atEnd, err := e.run(ctx, time.Now().Add(slice))
	if err != nil {
		return more, terse(err)
	}
	r.remember(w.ID, e.after)
	if !atEnd {
		return more, nil
	}
	return r.finish(ctx, c, w.ID)
}

// withdraw takes the bucket away from consumers: its name first, so that every key in flight meets NoSuchBucket. Garage
// lets nobody take the last name, and objects are deleted by S3, which needs one: hence a name that no key is for.
func withdraw(ctx context.Context, c *backend.Connection, bucket garage.Bucket, w wish) error {
	_, err := shape(ctx, c.Admin, bucket, wish{Name: names.RemovedBucket(w.ID), ID: w.ID, KeyID: c.KeyID, Quotas: closed()})
	return err
}

// closed are quotas under which nothing new is accepted: an upload that began before is refused at its end.
func closed() garage.Quotas {
	var nothing int64
	return garage.Quotas{MaxSize: &nothing, MaxObjects: &nothing}
}

// finish deletes the bucket behind whose last object the emptying has come.
func (r *Remover) finish(ctx context.Context, c *backend.Connection, id string) (outcome, error) {
	// Garage deletes a bucket in spite of unfinished uploads and would keep their parts for ever.
	if _, err := c.Admin.CleanupIncompleteUploads(ctx, id, 0); err != nil && !garage.IsAbsent(err) {
		return more, err
	}
	err := c.Admin.DeleteBucket(ctx, id)
	switch {
	case err == nil || garage.IsAbsent(err):
		r.forget(id)
		return gone, nil
	case garage.IsConflict(err):
		// An upload that was under way has ended in front of the place: from the start.
		r.forget(id)
		return more, nil
	default:
		return more, err
	}
}

func (r *Remover) place(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.places[id]
}

func (r *Remover) remember(id, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.places[id] = key
}

func (r *Remover) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.places, id)
}

// terse is the error without what differs each time, such as the ids of requests: it goes into a status.
func terse(err error) error {
	var answer smithy.APIError
	var call *smithy.OperationError
	if errors.As(err, &answer) && errors.As(err, &call) {
		return fmt.Errorf("%s: %s: %s", call.Operation(), answer.ErrorCode(), answer.ErrorMessage())
	}
	return err
}
