package mover

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
)

// entry is an object as a listing has it.
type entry struct {
	key, etag string
	size      int64
	changed   time.Time
}

func (e *entry) isParted() bool { return e != nil && isParted(e.etag) }

// pair is a key with what either side has under it: at least one of the two.
type pair struct {
	key            Key
	source, target *entry
}

// walk shows every key of either side of a bucket once, in order, to so many visitors at once. It holds some pages of
// each listing. What a visitor is shown may be out of date by then.
func (m *Mover) walk(ctx context.Context, bucket string, visit func(context.Context, pair) error) error {
	var mergeErr error
	err := m.each(ctx, func(ctx context.Context, show func(pair)) {
		mergeErr = merge(ctx, list(ctx, m.Source, bucket), list(ctx, m.Target, bucket), func(p pair) {
			p.key.Bucket = bucket
			show(p)
		})
	}, visit)
	// A visitor that failed ends the listings, whose error is then no news.
	if err == nil && mergeErr != nil {
		err = fmt.Errorf("bucket %s: %w", bucket, mergeErr)
	}
	return err
}

// each has so many workers visit what is shown. The workers stay: a goroutine for each object would grow its stack anew
// for each, a sixth of all our CPU time.
func (m *Mover) each(ctx context.Context, produce func(context.Context, func(pair)), visit func(context.Context, pair) error) error {
	group, ctx := errgroup.WithContext(ctx)
	work := make(chan pair)
	for range m.parallel() {
		group.Go(func() error {
			for p := range work {
				if err := visit(ctx, p); err != nil {
					return err
				}
			}
			return nil
		})
	}
	produce(ctx, func(p pair) {
		select {
		case work <- p:
		case <-ctx.Done():
		}
	})
	close(work)
	return group.Wait()
}

func merge(ctx context.Context, source, target *listing, show func(pair)) error {
	for ctx.Err() == nil {
		s, err := source.peek()
		if err != nil {
			return fmt.Errorf("list the source: %w", err)
		}
		t, err := target.peek()
		if err != nil {
			return fmt.Errorf("list the target: %w", err)
		}
		if s == nil && t == nil {
			return nil
		}
		p := next(s, t)
		show(p)
		if p.source != nil {
			source.advance()
		}
		if p.target != nil {
			target.advance()
		}
	}
	return context.Cause(ctx)
}

// next is what comes first: both sides list in the order of the keys' bytes, which is that of Go's strings. At least one
// of the two is not nil.
func next(source, target *entry) pair {
	switch {
	case target == nil || source != nil && source.key < target.key:
		return pair{key: Key{Key: source.key}, source: source}
	case source == nil || target.key < source.key:
		return pair{key: Key{Key: target.key}, target: target}
	}
	return pair{key: Key{Key: source.key}, source: source, target: target}
}

// listing is the keys of a bucket of one side, in order. The next page is asked for while the last one is worked on.
type listing struct {
	pages <-chan page
	rest  []entry
	ended bool
}

type page struct {
	entries []entry
	last    bool
	err     error
}

var errOrder = errors.New("the listing is not in order")

func list(ctx context.Context, side Side, bucket string) *listing {
	pages := make(chan page, 1)
	go func() {
		defer close(pages)
		after := ""
		for {
			p := readPage(ctx, side, bucket, after)
			select {
			case pages <- p:
			case <-ctx.Done():
				return
			}
			if p.last || p.err != nil {
				return
			}
			after = p.entries[len(p.entries)-1].key
		}
	}()
	return &listing{pages: pages}
}

// peek is the next object, nil after the last.
func (l *listing) peek() (*entry, error) {
	for len(l.rest) == 0 && !l.ended {
		p, ok := <-l.pages
		if !ok {
			return nil, context.Canceled // an end that no page has told is none
		}
		if p.err != nil {
			return nil, p.err
		}
		l.rest, l.ended = p.entries, p.last
	}
	if len(l.rest) == 0 {
		return nil, nil
	}
	return &l.rest[0], nil
}

func (l *listing) advance() { l.rest = l.rest[1:] }

// readPage is the page after a key. A page out of order is an error: objects would be taken for deleted.
func readPage(ctx context.Context, side Side, bucket, after string) page {
	input := &s3.ListObjectsV2Input{Bucket: &bucket, EncodingType: types.EncodingTypeUrl}
	if after != "" {
		input.StartAfter = &after
	}
	out, err := side.S3.ListObjectsV2(ctx, input)
	if err != nil {
		return page{err: err}
	}
	p := page{entries: make([]entry, 0, len(out.Contents)), last: !aws.ToBool(out.IsTruncated)}
	for i := range out.Contents {
		object := &out.Contents[i]
		key, err := url.PathUnescape(aws.ToString(object.Key))
		if err != nil {
			return page{err: fmt.Errorf("decode a key: %w", err)}
		}
		if key <= after {
			return page{err: fmt.Errorf("%w: %q after %q", errOrder, key, after)}
		}
		after = key
		p.entries = append(p.entries, entry{
			key: key, etag: strings.Trim(aws.ToString(object.ETag), `"`), size: aws.ToInt64(object.Size), changed: aws.ToTime(object.LastModified),
		})
	}
	if !p.last && len(p.entries) == 0 {
		return page{err: fmt.Errorf("%w: an empty page that is not the last", errOrder)}
	}
	return p
}
