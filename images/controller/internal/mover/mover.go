// Package mover makes the objects of one Garage cluster, the source, equal to those of another, the target, while clients
// write to the source: same bytes, same ETag, same metadata. It knows neither Kubernetes nor the phases of a migration.
package mover

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
)

// Side is one of the two clusters, by its internal key, through a gateway's S3 port. It must be reached by TLS: data
// that is passed on is not held back to be signed.
type Side struct{ S3 *s3.Client }

// Mover copies from the source to the target. One Mover serves a pair of clusters: its methods may run at once, and no
// two of them touch the same object at once. Nobody else may write to the target. Everything it holds is bounded:
// listing pages and the data in flight.
type Mover struct {
	Source, Target Side
	// Parallel is how many objects a method has in flight at once; 0 is DefaultParallel.
	Parallel int
	// BytesPerSecond bounds what is read from both sides, copies and read-backs together; 0 is no limit. It counts from
	// the first call on.
	BytesPerSecond int64
	Progress       *Progress // nil when nobody looks
	Log            logr.Logger

	prepared sync.Once
	limiter  *rate.Limiter // nil without a limit
	streams  chan struct{} // a place for each object or part that is too large to be held
	locks    keyLocks
	uploads  ownUploads
}

const (
	// DefaultParallel is how many objects are in flight at once when nothing else is said.
	DefaultParallel = 32
	// maxStreams is how many objects or parts are passed on at once: enough to fill disks and network, and Garage keeps
	// some blocks of each in memory.
	maxStreams = 8
)

// Key names an object.
type Key struct{ Bucket, Key string }

func (k Key) String() string { return k.Bucket + "/" + k.Key }

// PassResult is what a pass did.
type PassResult struct {
	Objects, Bytes      int64 // of the source, as listed
	Copied, CopiedBytes int64
	Deleted             int64 // from the target, since the source has them no more
}

// VerifyResult is what a verification saw.
type VerifyResult struct {
	Objects, Bytes int64 // of the source, as listed; each was read back from the target and found equal
	Followed       int64 // changed or gone at the source since the last pass; followed and read back
	Mended         int64 // spoiled at the target, copied again and read back
}

// ErrMismatch is wrapped with bucket and key of an object that cannot be read back from the target as the source has it,
// not even after it was copied again.
var ErrMismatch = errors.New("the target does not give back what was copied")

func (m *Mover) prepare() {
	m.prepared.Do(func() {
		m.streams = make(chan struct{}, maxStreams)
		if m.BytesPerSecond > 0 {
			m.limiter = rate.NewLimiter(rate.Limit(m.BytesPerSecond), limitStep)
		}
		if m.Progress == nil {
			m.Progress = &Progress{}
		}
	})
}

func (m *Mover) parallel() int {
	if m.Parallel > 0 {
		return m.Parallel
	}
	return DefaultParallel
}

// slack is how much older than its copy an object must be for a pass to believe the copy without looking: it covers
// clocks that differ and an object that was written again, with the same content and other metadata, while it was copied.
const slack = 10 * time.Second

// stale tells whether the target has to follow.
func (p pair) stale(slack time.Duration) bool {
	return p.source == nil || p.target == nil || p.source.etag != p.target.etag || p.source.size != p.target.size ||
		p.source.changed.Add(slack).After(p.target.changed)
}

// Pass lists both sides of a bucket in order, copies what the target lacks, has otherwise or has from before the source's
// last change, and deletes what the source has not. An error names the object; the next pass goes on from what is there.
func (m *Mover) Pass(ctx context.Context, bucket string) (PassResult, error) {
	m.prepare()
	var seen tally
	if err := m.abortLeftovers(ctx, bucket); err != nil {
		return PassResult{}, err
	}
	err := m.walk(ctx, bucket, func(ctx context.Context, p pair) error {
		if p.stale(slack) {
			now, err := m.follow(ctx, p.key, p.source.isParted())
			if err != nil {
				return err
			}
			seen.follow(now, p)
		}
		m.done(p.source, &seen)
		return nil
	})
	return seen.pass(), err
}

// Settle makes these objects equal now, whatever the target has, and reads each back.
func (m *Mover) Settle(ctx context.Context, keys []Key) error {
	m.prepare()
	err := m.each(ctx, func(_ context.Context, show func(pair)) {
		for _, key := range keys {
			show(pair{key: key})
		}
	}, func(ctx context.Context, p pair) error { return m.settle(ctx, p.key, false) })
	if err == nil {
		err = context.Cause(ctx) // which may have ended before all keys were shown
	}
	return err
}

// Verify reads every object of a bucket back from the target and compares its digest with the source's ETag. What
// differs or is spoiled is copied again; an object that cannot be read back even then ends it with ErrMismatch.
func (m *Mover) Verify(ctx context.Context, bucket string) (VerifyResult, error) {
	m.prepare()
	var seen tally
	err := m.walk(ctx, bucket, func(ctx context.Context, p pair) error {
		trouble := errOtherVersion
		if !p.stale(0) {
			trouble = m.readBack(ctx, p.key, p.source.etag)
		}
		if trouble != nil {
			if err := m.settle(ctx, p.key, p.source.isParted()); err != nil {
				return err
			}
			seen.mend(trouble)
			if !errors.Is(trouble, errOtherVersion) {
				m.Log.Error(trouble, "An object was spoiled at the target and was copied again", "object", p.key.String())
			}
		}
		m.done(p.source, &seen)
		return nil
	})
	return seen.verification(), err
}

// done counts an object of the source.
func (m *Mover) done(source *entry, seen *tally) {
	if source == nil {
		return
	}
	seen.objects.Add(1)
	seen.bytes.Add(source.size)
	m.Progress.Objects.Add(1)
	m.Progress.Bytes.Add(source.size)
}

func isParted(etag string) bool { return strings.Contains(etag, "-") }
