package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// worker is one client with keys of its own.
type worker struct {
	load   *Load
	prefix string
	dice   *rand.Rand
	live   []string  // keys with an object
	dead   []string  // keys without one that may be written again
	made   int       // how many keys were ever used
	since  time.Time // of the last good answer, or of the end of a rest; under the load's lock
}

// work goes on until the context ends.
func (w *worker) work(ctx context.Context) {
	pause := time.NewTicker(w.load.options.Pause)
	defer pause.Stop()
	for ctx.Err() == nil {
		w.turn(ctx)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

// turn is one operation.
func (w *worker) turn(ctx context.Context) {
	w.load.hold.RLock()
	defer w.load.hold.RUnlock()
	switch n := w.dice.IntN(100); {
	case len(w.live) == 0 || n < 25 && len(w.live) < w.load.options.Keys:
		w.add(ctx)
	case n < 45:
		w.put(ctx, w.pick())
	case n < 60:
		w.remove(ctx, w.pick())
	case n < 62:
		w.upload(ctx, w.pick())
	case n < 95:
		w.get(ctx, w.live[w.dice.IntN(len(w.live))])
	default:
		w.list(ctx)
	}
}

// pick takes a key out: it comes back when the outcome of what is done to it is known.
func (w *worker) pick() string {
	n := w.dice.IntN(len(w.live))
	key := w.live[n]
	w.live = slices.Delete(w.live, n, n+1)
	return key
}

// add writes a key that has no object, one that never had one or one that was deleted.
func (w *worker) add(ctx context.Context) {
	if n := len(w.dead); n > 0 && w.dice.IntN(3) == 0 {
		key := w.dead[n-1]
		w.dead = w.dead[:n-1]
		w.put(ctx, key)
		return
	}
	w.made++
	w.put(ctx, fmt.Sprintf("%s%06d", w.prefix, w.made))
}

func (w *worker) put(ctx context.Context, key string) {
	length := size(w.dice)
	version := w.load.ledger.write(key, length)
	body := content(w.load.options.Seed, key, version, length)
	err := w.call(ctx, "PutObject", func(ctx context.Context) error {
		_, err := w.load.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: &w.load.options.Bucket, Key: &key, Body: bytes.NewReader(body)})
		return err
	})
	w.settle(key, err)
}

func (w *worker) remove(ctx context.Context, key string) {
	w.load.ledger.remove(key)
	err := w.call(ctx, "DeleteObject", func(ctx context.Context) error {
		_, err := w.load.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &w.load.options.Bucket, Key: &key})
		return err
	})
	w.settle(key, err)
}

// settle writes down what became of an operation and where its key belongs then.
func (w *worker) settle(key string, err error) {
	switch {
	case err == nil:
		w.load.ledger.acknowledge(key)
	case refused(err):
		w.load.ledger.refuse(key)
	default:
		return // nobody knows; the key is left alone
	}
	if w.load.ledger.read(key).settled == absent {
		w.dead = append(w.dead, key)
		return
	}
	w.live = append(w.live, key)
}

// refused tells whether the error promises that nothing was changed.
func refused(err error) bool {
	var coded smithy.APIError
	return errors.As(err, &coded) && coded.ErrorCode() == "InsufficientStorage"
}

// upload writes the key in parts. Nothing of it may be seen before the last call.
func (w *worker) upload(ctx context.Context, key string) {
	length := partSize + 1 + w.dice.IntN(partSize/4) //nolint:mnd // a second part that is shorter
	version := w.load.ledger.write(key, length)
	body := content(w.load.options.Seed, key, version, length)
	id, parts, err := w.parts(ctx, key, body)
	if err != nil {
		w.load.ledger.refuse(key) // nobody asked to complete it
		if w.load.ledger.read(key).settled != absent {
			w.live = append(w.live, key)
		}
		w.abort(ctx, key, id)
		return
	}
	err = w.call(ctx, "CompleteMultipartUpload", func(ctx context.Context) error {
		_, err := w.load.s3.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: &w.load.options.Bucket, Key: &key, UploadId: &id, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		})
		return err
	})
	w.settle(key, err)
}

func (w *worker) parts(ctx context.Context, key string, body []byte) (string, []types.CompletedPart, error) {
	var id string
	err := w.call(ctx, "CreateMultipartUpload", func(ctx context.Context) error {
		made, err := w.load.s3.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &w.load.options.Bucket, Key: &key})
		if err == nil {
			id = aws.ToString(made.UploadId)
		}
		return err
	})
	if err != nil {
		return "", nil, err
	}
	var parts []types.CompletedPart
	for part := range slices.Chunk(body, partSize) {
		number := aws.Int32(int32(len(parts) + 1)) //nolint:gosec // two parts
		err := w.call(ctx, "UploadPart", func(ctx context.Context) error {
			sent, err := w.load.s3.UploadPart(ctx, &s3.UploadPartInput{
				Bucket: &w.load.options.Bucket, Key: &key, UploadId: &id, PartNumber: number, Body: bytes.NewReader(part),
			})
			if err == nil {
				parts = append(parts, types.CompletedPart{PartNumber: number, ETag: sent.ETag, ChecksumCRC32: sent.ChecksumCRC32})
			}
			return err
		})
		if err != nil {
			return id, nil, err
		}
	}
	return id, parts, nil
}

// abort gives an upload up as far as the store lets it; what is left of it is nobody's object.
func (w *worker) abort(ctx context.Context, key, id string) {
	if id == "" {
		return
	}
	_ = w.call(ctx, "AbortMultipartUpload", func(ctx context.Context) error {
		_, err := w.load.s3.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &w.load.options.Bucket, Key: &key, UploadId: &id})
		return err
	})
}

// get reads an object and compares: a store that has acknowledged shows it at once.
func (w *worker) get(ctx context.Context, key string) {
	var got found
	err := w.call(ctx, "GetObject", func(ctx context.Context) error {
		var err error
		got, err = w.load.get(ctx, key)
		return err
	})
	if err == nil {
		w.load.tell(w.load.ledger.read(key).judge(w.load.options.Seed, key, got))
	}
}

// list compares the worker's own keys with a listing. Garage asks two of three replicas and each leaves out what it
// knows to be deleted, so a replica that lags behind may show for a while what is gone. Only what a read confirms is a
// finding; the rest is counted.
func (w *worker) list(ctx context.Context) {
	var listed map[string]bool
	err := w.call(ctx, "ListObjectsV2", func(ctx context.Context) error {
		var err error
		listed, err = w.load.list(ctx, w.prefix)
		return err
	})
	if err != nil {
		return
	}
	stale := w.load.deviations(w.prefix, listed)
	for _, deviation := range stale {
		w.get(ctx, deviation.Key)
	}
	w.load.mu.Lock()
	defer w.load.mu.Unlock()
	w.load.phase.Stale += len(stale)
}

// call makes a request and counts it. One that the load itself gave up is not the store's failure.
func (w *worker) call(ctx context.Context, operation string, request func(context.Context) error) error {
	err := request(ctx)
	if err != nil && ctx.Err() != nil {
		return err
	}
	now := time.Now()
	w.load.mu.Lock()
	defer w.load.mu.Unlock()
	w.load.phase.plus(operation, err)
	if err == nil || refused(err) { // a refusal that was promised is an answer
		w.load.phase.Stall = max(w.load.phase.Stall, w.silence(now))
		w.since = now
	}
	return err
}

// silence is how long the worker got no answer.
func (w *worker) silence(now time.Time) time.Duration { return now.Sub(w.since) }

// get reads a whole object; one that is not there is no error.
func (l *Load) get(ctx context.Context, key string) (found, error) {
	object, err := l.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: &l.options.Bucket, Key: &key})
	if missing := (&types.NoSuchKey{}); errors.As(err, &missing) {
		return found{}, nil
	}
	if err != nil {
		return found{}, err
	}
	body, err := io.ReadAll(object.Body)
	return found{body: body, exists: true}, errors.Join(err, object.Body.Close())
}

// list is the keys that the store lists below the prefix.
func (l *Load) list(ctx context.Context, prefix string) (map[string]bool, error) {
	listed := map[string]bool{}
	pages := s3.NewListObjectsV2Paginator(l.s3, &s3.ListObjectsV2Input{Bucket: &l.options.Bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, object := range page.Contents {
			listed[aws.ToString(object.Key)] = true
		}
	}
	return listed, nil
}

// deviations are what a listing lacks or has too much.
func (l *Load) deviations(prefix string, listed map[string]bool) []*Finding {
	var all []*Finding
	add := func(f *Finding) {
		if f != nil {
			all = append(all, f)
		}
	}
	for key := range listed {
		add(l.ledger.read(key).listed(key, true))
	}
	for _, key := range l.ledger.keys() {
		if strings.HasPrefix(key, prefix) && !listed[key] {
			add(l.ledger.read(key).listed(key, false))
		}
	}
	return all
}
