package bucket

import (
	"context"
	"fmt"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/garage"
)

const (
	// page is how many objects are listed at once; Garage deletes the objects of a request one by one, so they are
	// spread over several requests.
	page     = 1000
	batch    = 100
	parallel = 4
)

// closed are quotas under which nothing new is accepted, so that a consumer whose key still lives does not fill a bucket
// that is being emptied.
func closed() garage.Quotas {
	var nothing int64
	return garage.Quotas{MaxSize: &nothing, MaxObjects: &nothing}
}

// remove deletes the bucket of the wish with all its objects and unfinished uploads. What it did before its context
// ended stays done, and the next pass goes on from there. It ends well when the bucket is gone.
func remove(ctx context.Context, c *backend.Connection, w wish) error {
	bucket, err := c.Admin.GetBucketByID(ctx, w.ID)
	if garage.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	// Objects are deleted by S3, for which the bucket needs name and grant; a creation may have ended before both.
	w.Quotas = closed()
	if _, err := shape(ctx, c.Admin, bucket, w); err != nil {
		return err
	}
	if err := empty(ctx, c.S3, w.Name); err != nil {
		return err
	}
	// Garage deletes a bucket in spite of unfinished uploads and would keep their parts for ever.
	if _, err := c.Admin.CleanupIncompleteUploads(ctx, w.ID, 0); err != nil {
		return err
	}
	if err := c.Admin.DeleteBucket(ctx, w.ID); !garage.IsAbsent(err) {
		return err
	}
	return nil
}

// empty deletes all objects of a bucket.
func empty(ctx context.Context, client *s3.Client, name string) error {
	for {
		// From the start each time: what was listed before is gone.
		listed, err := client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
			Bucket: aws.String(name), MaxKeys: aws.Int32(page), EncodingType: types.EncodingTypeUrl,
		})
		if err != nil {
			return fmt.Errorf("list objects: %w", err)
		}
		if len(listed.Contents) == 0 {
			return nil
		}
		if err := deleteAll(ctx, client, name, listed.Contents); err != nil {
			return err
		}
	}
}

func deleteAll(ctx context.Context, client *s3.Client, name string, objects []types.Object) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	var keys []string
	for _, object := range objects {
		// Keys are listed URL-encoded, since a list in XML cannot carry every character that a key may have ...
		key, err := url.QueryUnescape(aws.ToString(object.Key))
		if err != nil {
			return fmt.Errorf("decode a listed key: %w", err)
		}
		if inXML(key) {
			keys = append(keys, key)
			continue
		}
		// ... and neither can a request for the deletion of several.
		group.Go(func() error { return deleteOne(ctx, client, name, key) })
	}
	for begin := 0; begin < len(keys); begin += batch {
		part := keys[begin:min(begin+batch, len(keys))]
		group.Go(func() error { return deleteBatch(ctx, client, name, part) })
	}
	return group.Wait() //nolint:wrapcheck // the functions above wrap it
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

func deleteOne(ctx context.Context, client *s3.Client, name, key string) error {
	if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(name), Key: aws.String(key)}); err != nil {
		return fmt.Errorf("delete an object: %w", err)
	}
	return nil
}

func deleteBatch(ctx context.Context, client *s3.Client, name string, keys []string) error {
	objects := make([]types.ObjectIdentifier, 0, len(keys))
	for _, key := range keys {
		objects = append(objects, types.ObjectIdentifier{Key: aws.String(key)})
	}
	answer, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: aws.String(name), Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)},
	})
	if err != nil {
		return fmt.Errorf("delete objects: %w", err)
	}
	if len(answer.Errors) > 0 {
		first := answer.Errors[0]
		return fmt.Errorf("delete objects: %d of %d are left: %s: %s",
			len(answer.Errors), len(keys), aws.ToString(first.Code), aws.ToString(first.Message))
	}
	return nil
}
