package bucket

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/garage"
)

// errVanished tells that the recorded bucket is gone.
var errVanished = errors.New("the recorded bucket is gone")

// wish is what a bucket shall be.
type wish struct {
	Name   string // in S3
	ID     string // as recorded; empty before the bucket was made
	Store  string // as recorded with the id
	Quotas garage.Quotas
	KeyID  string // of the internal key
}

// granted is what the internal key may do: never owner, which could delete the bucket by S3.
var granted = garage.Permissions{Read: true, Write: true} //nolint:gochecknoglobals // a constant in all but syntax

// find reads the bucket, making it if it was never recorded in this store. record must have stored the id before the
// bucket gets its name: only then can a crash not leave a named bucket behind that nobody knows. lost tells that the
// recorded bucket went with its store.
func find(ctx context.Context, c *backend.Connection, w wish, record func(id string, lost bool) error) (garage.Bucket, error) {
	admin, lost := c.Admin, false
	if w.ID != "" {
		bucket, err := admin.GetBucketByID(ctx, w.ID)
		if !garage.IsAbsent(err) {
			return bucket, err
		}
		// A store that is known to be the same has lost the bucket. One that was recorded under another name is gone with
		// everything in it, and there is nothing left to hide by an empty bucket.
		if w.Store == "" || w.Store == c.Store {
			return bucket, errVanished
		}
		lost = true
	}
	// The name holds the UID, so a bucket with it is this SystemBucket's, whose status was lost.
	bucket, err := admin.GetBucketByAlias(ctx, w.Name)
	switch {
	case garage.IsAbsent(err):
		bucket, err = admin.CreateBucket(ctx)
	case err == nil:
		lost = false // it was moved here, with its objects
	}
	if err != nil {
		return bucket, err
	}
	return bucket, record(bucket.ID, lost)
}

// shape gives the bucket its name, quotas and grant, and takes away what others gave it: another name, or another key,
// which would live for ever. Only what differs, since each change costs Garage a quorum.
func shape(ctx context.Context, admin *garage.Client, bucket garage.Bucket, w wish) (garage.Bucket, error) {
	var err error
	if !bucket.HasAlias(w.Name) {
		if bucket, err = admin.AddBucketAlias(ctx, bucket.ID, w.Name); err != nil {
			return bucket, err
		}
	}
	for _, alias := range foreignNames(bucket, w) {
		if bucket, err = admin.RemoveBucketAlias(ctx, bucket.ID, alias); err != nil {
			return bucket, err
		}
	}
	if !bucket.Quotas.Equal(w.Quotas) {
		if bucket, err = admin.SetBucketQuotas(ctx, bucket.ID, w.Quotas); err != nil {
			return bucket, err
		}
	}
	if bucket, err = grant(ctx, admin, bucket, w); err != nil {
		return bucket, err
	}
	return bucket, check(bucket, w)
}

// grant lets the internal key read and write and nobody else do anything.
func grant(ctx context.Context, admin *garage.Client, bucket garage.Bucket, w wish) (garage.Bucket, error) {
	var err error
	if have := bucket.Granted(w.KeyID); !have.Read || !have.Write {
		if bucket, err = admin.AllowBucketKey(ctx, bucket.ID, w.KeyID, granted); err != nil {
			return bucket, err
		}
	}
	for _, key := range foreignGrants(bucket, w) {
		if bucket, err = admin.DenyBucketKey(ctx, bucket.ID, key.AccessKeyID, key.Permissions); err != nil {
			return bucket, err
		}
	}
	return bucket, nil
}

// foreignNames are the bucket's names but its own.
func foreignNames(bucket garage.Bucket, w wish) []string {
	return slices.DeleteFunc(slices.Clone(bucket.GlobalAliases), func(name string) bool { return name == w.Name })
}

// foreignGrants are the permissions on the bucket that nobody should have.
func foreignGrants(bucket garage.Bucket, w wish) []garage.BucketKey {
	var found []garage.BucketKey
	for _, key := range bucket.Keys {
		if key.AccessKeyID == w.KeyID {
			key.Permissions = garage.Permissions{Owner: key.Permissions.Owner}
		}
		if key.Permissions != (garage.Permissions{}) {
			found = append(found, key)
		}
	}
	return found
}

// check compares what Garage answered with what was asked for: versions of Garage drop what they do not know.
func check(bucket garage.Bucket, w wish) error {
	have := bucket.Granted(w.KeyID)
	switch {
	case !bucket.HasAlias(w.Name):
		return fmt.Errorf("bucket %s does not have the name it was given", bucket.ID)
	case len(foreignNames(bucket, w)) > 0:
		return fmt.Errorf("bucket %s has a name that was taken from it", bucket.ID)
	case !bucket.Quotas.Equal(w.Quotas):
		return fmt.Errorf("bucket %s does not have the quotas it was given", bucket.ID)
	case !have.Read || !have.Write:
		return fmt.Errorf("bucket %s is not granted to the internal key", bucket.ID)
	case len(foreignGrants(bucket, w)) > 0:
		return fmt.Errorf("bucket %s is granted to a key from which it was taken", bucket.ID)
	}
	return nil
}

// fits tells whether the bucket is as wished, so that nothing needs to be done.
func fits(bucket garage.Bucket, w wish) bool { return check(bucket, w) == nil }
