package bucket

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
)

const (
	// page is how many objects are listed at once; Garage deletes the objects of a request one by one, so they are
	// spread over several requests.
	page     = 1000
	batch    = 50
	parallel = 16
)

// emptying is the deletion of a bucket's objects in the order of their keys. It never lists what it has deleted: Garage
// keeps a mark of every deleted object for a day and would have to walk over all of them again for each page.
type emptying struct {
	client *s3.Client
	bucket string
	after  string // objects up to this key are gone
}

// run deletes objects until the time has come or none is left behind the place it has reached; atEnd tells which. After
// an error the place is where it was: what is gone by then is merely walked over again.
func (e *emptying) run(ctx context.Context, until time.Time) (atEnd bool, err error) {
	group, ctx := errgroup.WithContext(ctx)
	batches := make(chan []string, parallel)
	after := e.after
	group.Go(func() error {
		defer close(batches)
		var err error
		after, atEnd, err = e.list(ctx, until, batches)
		return err
	})
	for range parallel {
		group.Go(func() error {
			for keys := range batches {
				if err := e.deleteKeys(ctx, keys); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return false, err //nolint:wrapcheck // the functions above wrap it
	}
	e.after = after
	return atEnd, nil
}

// list hands out the keys behind the place until the time has come; it returns the last one and whether there are more.
func (e *emptying) list(ctx context.Context, until time.Time, batches chan<- []string) (last string, atEnd bool, err error) {
	last = e.after
	for {
		keys, more, err := e.listPage(ctx, last)
		if err != nil {
			return last, false, err
		}
		for begin := 0; begin < len(keys); begin += batch {
			select {
			case batches <- keys[begin:min(begin+batch, len(keys))]:
			case <-ctx.Done():
				return last, false, fmt.Errorf("delete objects: %w", ctx.Err())
			}
		}
		if len(keys) > 0 {
			last = keys[len(keys)-1]
		}
		if !more {
			return last, true, nil
		}
		if !time.Now().Before(until) {
			return last, false, nil
		}
	}
}

func (e *emptying) listPage(ctx context.Context, after string) (keys []string, more bool, err error) {
	in := &s3.ListObjectsV2Input{Bucket: aws.String(e.bucket), MaxKeys: aws.Int32(page), EncodingType: types.EncodingTypeUrl}
	if after != "" {
		in.StartAfter = aws.String(after)
	}
	listed, err := e.client.ListObjectsV2(ctx, in)
	if err != nil {
		return nil, false, fmt.Errorf("list objects: %w", err)
	}
	for _, object := range listed.Contents {
		// Keys are listed URL-encoded, since a list in XML cannot carry every character that a key may have.
		key, err := url.QueryUnescape(aws.ToString(object.Key))
		if err != nil {
			return nil, false, fmt.Errorf("decode a listed key: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, aws.ToBool(listed.IsTruncated), nil
}

// deleteKeys deletes the objects: in one request those whose keys XML can carry, each of the others by itself.
func (e *emptying) deleteKeys(ctx context.Context, keys []string) error {
	objects := make([]types.ObjectIdentifier, 0, len(keys))
	for _, key := range keys {
		if inXML(key) {
			objects = append(objects, types.ObjectIdentifier{Key: aws.String(key)})
			continue
		}
		if _, err := e.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(e.bucket), Key: aws.String(key)}); err != nil {
			return fmt.Errorf("delete an object: %w", err)
		}
	}
	if len(objects) == 0 {
		return nil
	}
	answer, err := e.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: aws.String(e.bucket), Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)},
	})
	if err != nil {
		return fmt.Errorf("delete objects: %w", err)
	}
	if len(answer.Errors) > 0 {
		first := answer.Errors[0]
		return fmt.Errorf("delete objects: %d of %d are left: %s: %s",
			len(answer.Errors), len(objects), aws.ToString(first.Code), aws.ToString(first.Message))
	}
	return nil
}

// inXML tells whether XML can carry the text unharmed: line ends are normalised there and control characters refused.
func inXML(text string) bool {
	for _, r := range text {
		if r < ' ' || r == 0xFFFE || r == 0xFFFF {
			return false
		}
	}
	return true
}
