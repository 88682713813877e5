package bucket

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/estate"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/names"
)

const executorInterval = 15 * time.Second

// Executor deletes the buckets whose SystemBuckets were deleted while the module was away. What is whose it knows from
// the list that leaving wrote, and from nothing else.
type Executor struct {
	// Reader reads from the API itself: a list from a cache need not be complete.
	Reader  client.Reader
	Book    *estate.Book
	Board   *backend.Board
	Remover *Remover
	Now     func() time.Time
}

// Start works until the context ends. It runs on the leader only.
func (x *Executor) Start(ctx context.Context) error {
	ticker := time.NewTicker(executorInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := x.Pass(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "remove what was deleted while the module was away")
		}
	}
}

// Pass judges every entry of the list and carries the verdicts out.
func (x *Executor) Pass(ctx context.Context) error {
	store, known := x.Board.Read()
	if !known || store.Connection == nil {
		return nil
	}
	entries, err := x.Book.Read(ctx)
	if err != nil || len(entries) == 0 {
		return err //nolint:wrapcheck // the book tells what it read
	}
	world, err := x.look(ctx, store.Connection)
	if err != nil {
		return err
	}
	marks, drops, condemned := x.judge(ctx, entries, world)
	if err := errors.Join(x.Book.Put(ctx, marks), x.Book.Remove(ctx, drops)); err != nil {
		return err //nolint:wrapcheck // the book tells what it wrote
	}
	for _, e := range condemned {
		if err := x.execute(ctx, store.Connection, e); err != nil {
			return fmt.Errorf("delete the bucket %s of %s/%s: %w", e.Bucket, e.Namespace, e.Name, err)
		}
	}
	return nil
}

// look lists all SystemBuckets. An answer in pieces or from a cache would make living ones look gone.
func (x *Executor) look(ctx context.Context, c *backend.Connection) (estate.World, error) {
	w := estate.World{Held: map[types.UID]bool{}, Recorded: map[string]bool{}, Store: c.Store, Now: x.Now()}
	var all v1alpha1.SystemBucketList
	if err := x.Reader.List(ctx, &all); err != nil {
		return w, fmt.Errorf("list SystemBuckets: %w", err)
	}
	if all.Continue != "" {
		return w, errIncomplete
	}
	for i := range all.Items {
		sb := &all.Items[i]
		w.Held[sb.UID] = controllerutil.ContainsFinalizer(sb, names.Finalizer)
		w.Recorded[sb.Status.BucketID] = true
	}
	return w, nil
}

var errIncomplete = errors.New("the list of SystemBuckets is not complete")

func (x *Executor) judge(ctx context.Context, entries map[types.UID]estate.Entry, w estate.World) (marks, drops, condemned []estate.Entry) {
	for _, e := range entries {
		verdict, why := estate.Judge(e, w)
		if verdict != estate.Keep {
			log.FromContext(ctx).Info("a bucket that was let go", "namespace", e.Namespace, "name", e.Name, "bucket", e.Bucket, "verdict", why)
		}
		switch verdict {
		case estate.Keep:
		case estate.Revive:
			e.Gone = nil
			marks = append(marks, e)
		case estate.Mark:
			when := w.Now
			e.Gone = &when
			marks = append(marks, e)
		case estate.Drop:
			drops = append(drops, e)
		case estate.Delete:
			condemned = append(condemned, e)
		}
	}
	return marks, drops, condemned
}

// errForeignName tells that the bucket of an entry has a name that it was not given by us.
var errForeignName = errors.New("the bucket has a name that is not of the SystemBucket that is gone; it is left alone")

// execute deletes the bucket of an entry, as much as the pass has time for, and crosses the entry out when it is gone.
func (x *Executor) execute(ctx context.Context, c *backend.Connection, e estate.Entry) error {
	own := names.Bucket(e.Namespace, e.Name, string(e.UID))
	proved := func(bucket garage.Bucket) error {
		for _, name := range bucket.GlobalAliases {
			if name != own && name != names.RemovedBucket(e.Bucket) {
				return fmt.Errorf("%w: %s", errForeignName, name)
			}
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	for {
		state, err := x.Remover.step(ctx, c, wish{Name: own, ID: e.Bucket, KeyID: c.KeyID}, proved)
		switch {
		case err != nil:
			return err
		case state == gone:
			return x.Book.Remove(ctx, []estate.Entry{e}) //nolint:wrapcheck // the book tells what it wrote
		case state == queued || ctx.Err() != nil:
			return nil // the next pass goes on
		}
	}
}
