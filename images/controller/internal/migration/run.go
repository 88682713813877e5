package migration

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/mover"
	"github.com/deckhouse/system-s3/lib/migration"
	"github.com/deckhouse/system-s3/lib/plan"
)

const (
	// bucketsAtOnce is how many buckets are passed over at once, each with so many objects in flight.
	bucketsAtOnce  = 4
	objectsAtOnce  = 16
	retryInterval  = 5 * time.Second
	followInterval = 500 * time.Millisecond
	// farBehind is how many entries of the journal one look may find before writes may be held.
	farBehind = 2000
)

// run is the work under one journal: everything that this process knows about the target rests on it.
type run struct {
	source, target string
	id             string          // of the journal; empty when there is none
	runs           map[string]bool // what the doors were when the journal began
	doors          []backend.Door
	buckets        *buckets
	mover          *mover.Mover
	cancel         context.CancelFunc
	group          sync.WaitGroup

	following sync.Mutex // one at a time reads the journal
	after     map[string]int64

	mu     sync.Mutex
	broken string
	behind bool
	work   migration.Work
	begun  time.Time // the present work
	total  migration.Figures
}

// newRun begins a journal at every door, unless it is the fence that keeps writes away.
func (c *Conductor) newRun(ctx context.Context, s seen, journal bool) (*run, error) {
	from, to, err := c.ways(ctx, s)
	if err != nil {
		return nil, err
	}
	r := &run{source: s.source.plane.ID, target: s.target.plane.ID, runs: map[string]bool{}, after: map[string]int64{}}
	r.buckets = &buckets{s3: to}
	r.buckets.keyID, _ = internalKey(*s.target)
	r.buckets.ask(c.replica(s.source), c.replica(s.target))
	r.mover = &mover.Mover{
		Source: mover.Side{S3: from}, Target: mover.Side{S3: to}, Parallel: objectsAtOnce, BytesPerSecond: c.BytesPerSecond,
		Progress: &mover.Progress{}, Log: log.FromContext(ctx),
	}
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	if !journal {
		return r, nil
	}
	r.id, r.doors = rand.Text(), c.doors(*s.source)
	for _, p := range s.source.pods {
		r.runs[p.run] = true
	}
	asking, done := context.WithTimeout(ctx, askTimeout)
	defer done()
	for _, door := range r.doors {
		if err := backend.BeginJournal(asking, door, r.id); err != nil {
			cancel()
			return nil, fmt.Errorf("begin the journal of %s: %w", door.Name, err)
		}
	}
	r.group.Go(func() { r.follow(working) })
	return r, nil
}

func (r *run) isOf(state *plan.MigrationState) bool {
	return state != nil && state.Source == r.source && state.Target == r.target
}

// stop ends all work and waits for its end.
func (r *run) stop() {
	r.cancel()
	r.group.Wait()
}

func (r *run) mark(s *seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Journal = migration.Journal{ID: r.id, Runs: r.runs, Broken: r.broken, Behind: r.behind}
	s.Work = r.work
}

// follow settles what the journals tell, time and again.
func (r *run) follow(ctx context.Context) {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		found, err := r.read(ctx)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Info("the journal could not be followed for once", "error", err.Error())
		}
		r.mu.Lock()
		r.behind = err != nil || found > farBehind
		if errors.Is(err, mover.ErrMismatch) {
			r.work.Mismatch = err.Error()
		}
		r.mu.Unlock()
		if found > farBehind {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// read reads a page of each journal and makes the target equal; it tells how many entries there were.
func (r *run) read(ctx context.Context) (found int, err error) {
	r.following.Lock()
	defer r.following.Unlock()
	for _, door := range r.doors {
		page, err := backend.ReadJournal(ctx, door, r.id, r.after[door.Name])
		switch {
		case errors.Is(err, backend.ErrNoJournal):
			r.breakOff("the gateway of " + door.Name + " was restarted")
			return found, err
		case err != nil:
			return found, fmt.Errorf("%s: %w", door.Name, err)
		case page.Overflow || page.ID != r.id:
			r.breakOff("the gateway of " + door.Name + " could not record all writes")
			return found, backend.ErrNoJournal
		case len(page.Entries) == 0:
			continue
		}
		if err := r.settle(ctx, page.Entries); err != nil {
			return found, err
		}
		found += len(page.Entries)
		r.after[door.Name] = page.Entries[len(page.Entries)-1].Sequence
	}
	return found, nil
}

// settle makes the target equal in these keys. Those of buckets that are gone go with their buckets.
func (r *run) settle(ctx context.Context, entries []backend.JournalEntry) error {
	for _, entry := range entries {
		if !r.buckets.has(entry.Bucket) {
			if err := r.buckets.equal(ctx); err != nil {
				return err
			}
			break
		}
	}
	keys := make([]mover.Key, 0, len(entries))
	for _, entry := range entries {
		if r.buckets.has(entry.Bucket) {
			keys = append(keys, mover.Key{Bucket: entry.Bucket, Key: entry.Key})
		}
	}
	if err := r.mover.Settle(ctx, keys); err != nil {
		r.buckets.doubt() // one of them may have gone
		return fmt.Errorf("settle %d keys of the journal: %w", len(keys), err)
	}
	return nil
}

// drain settles the journals' rest; nobody writes meanwhile, so there is an end.
func (r *run) drain(ctx context.Context) error {
	for {
		found, err := r.read(ctx)
		if err != nil {
			return err
		}
		if found == 0 {
			return nil
		}
	}
}

func (r *run) breakOff(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken == "" {
		r.broken = why
	}
}

// start does work on all buckets in the background.
func (r *run) start(ctx context.Context, bucket func(context.Context, string) error, done func(*migration.Work)) {
	r.mu.Lock()
	r.work.Running, r.begun = true, time.Now()
	r.mu.Unlock()
	r.mover.Progress.Reset()
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := r.cancel
	r.cancel = func() { cancel(); stop() }
	r.group.Go(func() {
		defer cancel()
		err := r.all(working, bucket)
		if err != nil && !errors.Is(err, mover.ErrMismatch) {
			r.rest(working, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.work.Running = false
		switch {
		case errors.Is(err, mover.ErrMismatch):
			r.work.Mismatch = err.Error()
		case err != nil:
			return
		default:
			done(&r.work)
			r.work.Trouble = ""
		}
	})
}

// rest tells what went wrong and waits before it is tried again.
func (r *run) rest(ctx context.Context, trouble error) {
	r.mu.Lock()
	r.work.Trouble = "another try after an error: " + trouble.Error()
	r.mu.Unlock()
	timer := time.NewTimer(retryInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (r *run) all(ctx context.Context, bucket func(context.Context, string) error) error {
	if err := r.buckets.equal(ctx); err != nil {
		return err
	}
	names, objects, bytes := r.buckets.sum()
	r.mu.Lock()
	r.total.Objects, r.total.Bytes = objects, bytes
	r.mu.Unlock()
	group, together := errgroup.WithContext(ctx)
	group.SetLimit(bucketsAtOnce)
	for _, name := range names {
		group.Go(func() error {
			err := bucket(together, name)
			if err != nil && together.Err() == nil {
				// A bucket that was deleted meanwhile is none of the source's any more.
				if r.buckets.doubt(); r.buckets.equal(together) == nil && !r.buckets.has(name) {
					return nil
				}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err //nolint:wrapcheck // the mover names the object
	}
	return r.buckets.empty(ctx)
}

// figures are how far the present work is.
func (r *run) figures() (migration.Figures, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.total
	if r.begun.IsZero() {
		return f, false
	}
	f.For = time.Since(r.begun)
	f.Copied, f.CopiedBytes = r.mover.Progress.Objects.Load(), r.mover.Progress.Bytes.Load()
	return f, r.work.Running
}

func (r *run) pass(ctx context.Context, bucket string) error {
	_, err := r.mover.Pass(ctx, bucket)
	return err //nolint:wrapcheck // the mover names the object
}

func (r *run) verify(ctx context.Context, bucket string) error {
	_, err := r.mover.Verify(ctx, bucket)
	return err //nolint:wrapcheck // the mover names the object
}
