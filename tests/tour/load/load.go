// Package load is a client that keeps account: several workers write, overwrite, delete, upload in parts, read and list
// objects, and whatever was acknowledged is written down. What a version of an object consists of follows from its key
// and its number, so nothing has to be kept in order to check every byte.
//
// A key has one writer. An operation whose outcome is not known may have worked or not, and may still come to work, so
// its key is left alone from then on; either is right in the end. Therefore whatever Check finds is a fault of the
// store.
package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Options of a Load.
type Options struct {
	// S3 is how to reach the store. Its Retryer is replaced by the SDK's standard one, which is counted.
	S3 s3.Options
	// Bucket is the bucket's name in S3; Prefix comes before every key.
	Bucket, Prefix string
	// Seed decides what is done; the same seed repeats it as far as the store answers the same.
	Seed uint64
	// Workers is how many clients there are.
	Workers int
	// Pause of a worker between two operations.
	Pause time.Duration
	// Keys is how many objects a worker keeps at most.
	Keys int
}

// Load works from Start to Stop.
type Load struct {
	options Options
	s3      *s3.Client
	ledger  *ledger
	workers []*worker

	patience time.Duration // with a store in the end

	hold sync.RWMutex // held for reading during an operation
	done sync.WaitGroup
	stop context.CancelFunc

	mu       sync.Mutex
	phase    Phase
	findings []Finding
}

// New makes a Load that does nothing yet.
func New(o Options) *Load {
	l := &Load{options: o, ledger: newLedger(), patience: patience, stop: func() {}}
	o.S3.Retryer = counted{retry.NewStandard(), l.retried}
	l.s3 = s3.New(o.S3)
	for n := range o.Workers {
		l.workers = append(l.workers, &worker{
			load: l, prefix: fmt.Sprintf("%s%d/", o.Prefix, n), dice: rand.New(rand.NewPCG(o.Seed, uint64(n))), //nolint:gosec // chance, not secrecy
		})
	}
	return l
}

// Start sets the workers to work until Stop.
func (l *Load) Start(ctx context.Context) {
	ctx, l.stop = context.WithCancel(ctx)
	for _, w := range l.workers {
		w.since = time.Now()
		l.done.Go(func() { w.work(ctx) })
	}
}

// Stop ends the work. Operations on their way are given up and may or may not have worked.
func (l *Load) Stop() {
	l.stop()
	l.done.Wait()
}

// Begin begins a phase and returns what was seen in the one before.
func (l *Load) Begin(name string) Phase {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.workers {
		l.phase.Stall = max(l.phase.Stall, w.silence(time.Now()))
	}
	ended := l.phase
	l.phase = Phase{Name: name}
	return ended
}

// Rest lets the workers rest, without an operation on its way, until resume is called.
func (l *Load) Rest() (resume func()) {
	l.hold.Lock()
	return func() {
		l.mu.Lock()
		for _, w := range l.workers {
			w.since = time.Now()
		}
		l.mu.Unlock()
		l.hold.Unlock()
	}
}

// Present are the keys that surely have an object.
func (l *Load) Present() []string {
	var keys []string
	for _, key := range l.ledger.keys() {
		if e := l.ledger.read(key); e.settled != absent && !e.doubted && !e.told {
			keys = append(keys, key)
		}
	}
	return keys
}

// Keys is how many keys were ever used.
func (l *Load) Keys() int { return len(l.ledger.keys()) }

// tell takes down a finding, once a key.
func (l *Load) tell(f *Finding) {
	if f == nil {
		return
	}
	l.ledger.tell(f.Key)
	l.mu.Lock()
	defer l.mu.Unlock()
	f.Phase, f.At = l.phase.Name, time.Now()
	l.findings = append(l.findings, *f)
}

// takeFindings returns what was found and not yet handed over.
func (l *Load) takeFindings() []Finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := slices.Clone(l.findings)
	l.findings = nil
	return taken
}

func (l *Load) retried() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase.Retried++
}

// counted tells of every attempt beyond the first.
type counted struct {
	*retry.Standard

	tell func()
}

// RetryDelay is asked for once before each such attempt.
func (c counted) RetryDelay(attempt int, err error) (time.Duration, error) {
	c.tell()
	return c.Standard.RetryDelay(attempt, err)
}

var _ aws.RetryerV2 = counted{}
