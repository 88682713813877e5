package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/deckhouse/system-s3/lib/access"
)

const (
	// directoryTimeout bounds the question, which waits for two of three replicas.
	directoryTimeout = 5 * time.Second
	// absentFor is how long a bucket that the store does not have is not asked for again: each question costs Garage
	// about 20 ms of CPU, and whoever has a key for a deleted bucket could ask for ever.
	absentFor = 2 * time.Second
	// rememberedBuckets bounds what is remembered.
	rememberedBuckets = 10_000
)

// directory tells whether the store has a bucket when this node says that it has not. Garage's S3 looks into the node's
// own copy of the list of buckets alone, and a node that was away while a bucket was made has an old copy until it has
// compared it with the others', which it does every ten seconds. The question is answered by a majority of the nodes.
// Safe for concurrent use.
type directory struct {
	// ask tells whether the store has a bucket; an error is no answer.
	ask func(ctx context.Context, bucket string) (bool, error)
	now func() time.Time

	flight singleflight.Group
	mu     sync.Mutex
	known  map[string]bool // buckets that the node was seen to know; it does not forget them
	absent map[string]time.Time
}

// knows tells whether this node was seen to know the bucket, so that a 404 is about the object.
func (d *directory) knows(bucket string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[bucket]
}

// has tells whether the store has the bucket.
func (d *directory) has(ctx context.Context, bucket string) (bool, error) {
	if d.lately(bucket) {
		return false, nil
	}
	answer, err, _ := d.flight.Do(bucket, func() (any, error) {
		// Others wait for the same answer: it must not end with the one who asked first.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), directoryTimeout)
		defer cancel()
		return d.ask(ctx, bucket)
	})
	if err != nil {
		return false, fmt.Errorf("ask the store whether it has the bucket: %w", err)
	}
	exists, _ := answer.(bool)
	if !exists {
		d.mark(func() { d.absent[bucket] = d.now() })
	}
	return exists, nil
}

// lately tells whether the bucket was found absent a moment ago.
func (d *directory) lately(bucket string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	age := d.now().Sub(d.absent[bucket])
	return age >= 0 && age < absentFor
}

// learn remembers that this node knows the bucket.
func (d *directory) learn(bucket string) { d.mark(func() { d.known[bucket] = true }) }

func (d *directory) mark(note func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || len(d.known)+len(d.absent) >= rememberedBuckets {
		d.known, d.absent = map[string]bool{}, map[string]time.Time{}
	}
	note()
}

// errLagging is told to the log.
var errLagging = errors.New("the node has not heard of the bucket yet, which the store has")

// ask asks Garage, and does not take the node's word for it that there is no such bucket.
func (x *exchange) ask(ctx context.Context, op access.Operation) (*http.Response, error) {
	response, err := x.send(ctx, op)
	if err != nil || response.StatusCode != http.StatusNotFound {
		return response, err
	}
	if x.request.Method == http.MethodHead {
		return x.askHead(ctx, op, response)
	}
	told, err := readRefusal(response)
	if err != nil || told.Code != access.ErrNoSuchBucket.Code {
		return response, nil //nolint:nilerr // an answer that cannot be read is judged by its status
	}
	return x.unlessLagging(ctx, response)
}

// askHead is ask for HEAD, whose answers are wordless: the bucket that the 404 may be about is asked for by itself, once.
func (x *exchange) askHead(ctx context.Context, op access.Operation, response *http.Response) (*http.Response, error) {
	d := &x.handler.directory
	if d.knows(x.verified.Bucket) {
		return response, nil
	}
	question, err := http.NewRequestWithContext(ctx, http.MethodHead, x.handler.Signer.Endpoint.JoinPath(x.verified.Bucket).String(), http.NoBody)
	if err == nil {
		err = x.handler.Signer.Sign(question, x.handler.Now())
	}
	if err != nil {
		return nil, errors.Join(err, response.Body.Close())
	}
	answer, err := x.handler.Transport.RoundTrip(question)
	if err != nil {
		return nil, errors.Join(x.broken(ctx, err), response.Body.Close())
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode == http.StatusNotFound {
		return x.unlessLagging(ctx, response)
	}
	d.learn(x.verified.Bucket)
	return x.send(ctx, op) // the first answer may be older than what the node knows now
}

// unlessLagging is the answer "there is no such bucket", if the store has none. Otherwise the client had better come again
// by another connection, which may lead to another replica.
func (x *exchange) unlessLagging(ctx context.Context, response *http.Response) (*http.Response, error) {
	exists, err := x.handler.directory.has(ctx, x.verified.Bucket)
	if err == nil && !exists {
		return response, nil
	}
	if err == nil {
		err = errLagging
	}
	x.out.Header().Set("Connection", "close")
	return nil, errors.Join(access.ErrSlowDown, err, response.Body.Close())
}
