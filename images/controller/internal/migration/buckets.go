package migration

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/names"
)

const (
	listPage      = 1000
	changesAtOnce = 8
)

// buckets makes the target's buckets those of the source: the same names, granted to the target's internal key, without
// quotas, which the objects of the source may exceed. Whoever owns the buckets gives them theirs after the switch.
type buckets struct {
	s3    *s3.Client // of the target
	keyID string     // the target's internal key

	changing sync.Mutex
	mu       sync.Mutex
	// from and to are replicas of source and target that serve; nil while none does.
	from, to *garage.Client
	known    map[string]garage.Bucket // of the source, by name; all of them are at the target, too
}

// ask tells which replicas are to be asked from now on.
func (b *buckets) ask(from, to *garage.Client) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.from, b.to = from, to
}

func (b *buckets) admins() (from, to *garage.Client, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.from == nil || b.to == nil {
		return nil, nil, errNoReplica
	}
	return b.from, b.to, nil
}

// has tells whether the bucket was seen at the source and is at the target.
func (b *buckets) has(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, known := b.known[name]
	return known
}

// doubt forgets all: the next look is a new one.
func (b *buckets) doubt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = nil
}

func (b *buckets) sum() (named []string, objects, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, bucket := range b.known {
		named, objects, bytes = append(named, name), objects+bucket.Objects, bytes+bucket.Bytes
	}
	slices.Sort(named)
	return named, objects, bytes
}

// equal makes what is missing and takes away the names of what the source has not.
func (b *buckets) equal(ctx context.Context) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	source, target, err := b.admins()
	if err != nil {
		return fmt.Errorf("compare the buckets: %w", err)
	}
	wanted, err := named(ctx, source)
	if err != nil {
		return fmt.Errorf("list the source's buckets: %w", err)
	}
	present, err := named(ctx, target)
	if err != nil {
		return fmt.Errorf("list the target's buckets: %w", err)
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(changesAtOnce)
	for name := range wanted {
		have := present[name]
		if have.Granted(b.keyID) == granted {
			continue
		}
		group.Go(func() error { return b.ensure(gctx, target, name, have) })
	}
	for name, bucket := range present {
		if _, there := wanted[name]; !there {
			group.Go(func() error { return withdraw(gctx, target, name, bucket) })
		}
	}
	if err := group.Wait(); err != nil {
		return err //nolint:wrapcheck // wrapped by the functions above
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = wanted
	return nil
}

// granted is what the internal key may do.
var granted = garage.Permissions{Read: true, Write: true} //nolint:gochecknoglobals // a constant in all but syntax

func (b *buckets) ensure(ctx context.Context, target *garage.Client, name string, have garage.Bucket) (err error) {
	if have.ID == "" {
		if have, err = target.CreateBucket(ctx); err == nil {
			have, err = target.AddBucketAlias(ctx, have.ID, name)
		}
	}
	if err == nil {
		_, err = target.AllowBucketKey(ctx, have.ID, b.keyID, granted)
	}
	if err != nil {
		return fmt.Errorf("make bucket %s at the target: %w", name, err)
	}
	return nil
}

// withdraw gives the bucket the name of one that is being deleted.
func withdraw(ctx context.Context, target *garage.Client, name string, bucket garage.Bucket) error {
	_, err := target.AddBucketAlias(ctx, bucket.ID, names.RemovedBucket(bucket.ID))
	if err == nil {
		_, err = target.RemoveBucketAlias(ctx, bucket.ID, name)
	}
	if err != nil {
		return fmt.Errorf("take the name from bucket %s at the target: %w", name, err)
	}
	return nil
}

// empty deletes the target's buckets that the source has not. Only outside of a hold: it may take long.
func (b *buckets) empty(ctx context.Context) error {
	_, target, err := b.admins()
	if err != nil {
		return fmt.Errorf("delete buckets of the target: %w", err)
	}
	all, err := list(ctx, target)
	if err != nil {
		return fmt.Errorf("list the target's buckets: %w", err)
	}
	for _, bucket := range all {
		name := names.RemovedBucket(bucket.ID)
		if !bucket.HasAlias(name) {
			continue
		}
		if err := b.remove(ctx, target, bucket.ID, name); err != nil {
			return fmt.Errorf("delete bucket %s of the target: %w", name, err)
		}
	}
	return nil
}

func (b *buckets) remove(ctx context.Context, target *garage.Client, id, name string) error {
	pages := s3.NewListObjectsV2Paginator(b.s3, &s3.ListObjectsV2Input{Bucket: &name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		var gone []types.ObjectIdentifier
		for _, object := range page.Contents {
			gone = append(gone, types.ObjectIdentifier{Key: object.Key})
		}
		if len(gone) == 0 {
			continue
		}
		_, err = b.s3.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &name, Delete: &types.Delete{Objects: gone}})
		if err != nil {
			return err
		}
	}
	if _, err := target.CleanupIncompleteUploads(ctx, id, 0); err != nil {
		return err
	}
	return target.DeleteBucket(ctx, id)
}

// named are the buckets with a name of their own, by it. Those that are being deleted have none.
func named(ctx context.Context, admin *garage.Client) (map[string]garage.Bucket, error) {
	all, err := list(ctx, admin)
	if err != nil {
		return nil, err
	}
	found := make(map[string]garage.Bucket, len(all))
	for _, bucket := range all {
		for _, name := range bucket.GlobalAliases {
			if name != names.RemovedBucket(bucket.ID) {
				found[name] = bucket
			}
		}
	}
	return found, nil
}

// list reads all buckets of Garage, by id.
func list(ctx context.Context, admin *garage.Client) (map[string]garage.Bucket, error) {
	found, from := map[string]garage.Bucket{}, ""
	for {
		page, err := admin.ListBucketsInfo(ctx, from, listPage)
		if err != nil {
			return nil, err
		}
		before := len(found)
		for _, bucket := range page {
			found[bucket.ID], from = bucket, bucket.ID
		}
		// A page begins with the last bucket of the page before.
		if len(page) < listPage || len(found) == before {
			return found, nil
		}
	}
}

// uploads counts the source's unfinished multipart uploads.
func (b *buckets) uploads(ctx context.Context) (int, error) {
	source, _, err := b.admins()
	if err != nil {
		return 0, fmt.Errorf("count unfinished uploads: %w", err)
	}
	all, err := list(ctx, source)
	if err != nil {
		return 0, fmt.Errorf("count unfinished uploads: %w", err)
	}
	count := int64(0)
	for _, bucket := range all {
		count += bucket.UnfinishedMultipartUploads
	}
	return int(count), nil
}
