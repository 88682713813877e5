package garage

import (
	"context"
	"net/url"
	"strconv"
)

// Bucket is a bucket of Garage.
type Bucket struct {
	ID            string      `json:"id"` // 64 hexadecimal digits
	Created       string      `json:"created"`
	GlobalAliases []string    `json:"globalAliases"`
	Keys          []BucketKey `json:"keys"`
	Objects       int64       `json:"objects"`
	Bytes         int64       `json:"bytes"`
	// Unfinished uploads, multipart ones included.
	UnfinishedUploads          int64  `json:"unfinishedUploads"`
	UnfinishedMultipartUploads int64  `json:"unfinishedMultipartUploads"`
	Quotas                     Quotas `json:"quotas"`
}

// BucketKey is a key that a bucket was granted to.
type BucketKey struct {
	AccessKeyID string      `json:"accessKeyId"`
	Permissions Permissions `json:"permissions"`
}

// Quotas of a bucket, in bytes and objects. Nil is no limit; zero is a limit of nothing.
type Quotas struct {
	MaxSize    *int64 `json:"maxSize"`
	MaxObjects *int64 `json:"maxObjects"`
}

// Equal tells whether both set the same limits.
func (q Quotas) Equal(other Quotas) bool {
	return equalLimit(q.MaxSize, other.MaxSize) && equalLimit(q.MaxObjects, other.MaxObjects)
}

func equalLimit(a, b *int64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// HasAlias tells whether the bucket answers to the name.
func (b Bucket) HasAlias(alias string) bool {
	for _, each := range b.GlobalAliases {
		if each == alias {
			return true
		}
	}
	return false
}

// Granted is what the key may do with the bucket.
func (b Bucket) Granted(accessKeyID string) Permissions {
	for _, key := range b.Keys {
		if key.AccessKeyID == accessKeyID {
			return key.Permissions
		}
	}
	return Permissions{}
}

// ListBucketsInfo reads a page of at most limit buckets, ordered by id, beginning with the id from, which is included;
// "" begins with the first.
func (c *Client) ListBucketsInfo(ctx context.Context, from string, limit int) ([]Bucket, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if from != "" {
		query.Set("offset", from)
	}
	var answer []Bucket
	return answer, c.read(ctx, "ListBucketsInfo", query, &answer)
}

// CreateBucket makes a bucket without any alias: Garage creates bucket and alias in two steps, so only an id that was
// recorded first cannot get lost.
func (c *Client) CreateBucket(ctx context.Context) (Bucket, error) {
	var answer Bucket
	return answer, c.change(ctx, request{call: "CreateBucket", body: struct{}{}}, &answer)
}

// GetBucketByID reads a bucket. IsAbsent(err) when there is none.
func (c *Client) GetBucketByID(ctx context.Context, id string) (Bucket, error) {
	var answer Bucket
	return answer, c.read(ctx, "GetBucketInfo", url.Values{"id": {id}}, &answer)
}

// GetBucketByAlias reads the bucket with a global alias. IsAbsent(err) when there is none.
func (c *Client) GetBucketByAlias(ctx context.Context, alias string) (Bucket, error) {
	var answer Bucket
	return answer, c.read(ctx, "GetBucketInfo", url.Values{"globalAlias": {alias}}, &answer)
}

// SetBucketQuotas replaces both limits of a bucket and returns the bucket.
func (c *Client) SetBucketQuotas(ctx context.Context, id string, quotas Quotas) (Bucket, error) {
	body := struct {
		Quotas Quotas `json:"quotas"`
	}{quotas}
	var answer Bucket
	return answer, c.change(ctx, request{call: "UpdateBucket", query: url.Values{"id": {id}}, body: body}, &answer)
}

// DeleteBucket deletes an empty bucket with its aliases. IsConflict(err) when it is not empty, IsAbsent(err) when
// there is none. Unfinished uploads don't hinder it and are left behind: clean them up first.
func (c *Client) DeleteBucket(ctx context.Context, id string) error {
	return c.change(ctx, request{call: "DeleteBucket", query: url.Values{"id": {id}}}, nil)
}

type aliasChange struct {
	BucketID    string `json:"bucketId"`
	GlobalAlias string `json:"globalAlias"`
}

// AddBucketAlias gives a bucket a global name and returns the bucket; giving it again changes nothing.
func (c *Client) AddBucketAlias(ctx context.Context, id, alias string) (Bucket, error) {
	var answer Bucket
	return answer, c.change(ctx, request{call: "AddBucketAlias", body: aliasChange{id, alias}}, &answer)
}

// RemoveBucketAlias takes a global name from a bucket. Garage refuses to take the last one.
func (c *Client) RemoveBucketAlias(ctx context.Context, id, alias string) (Bucket, error) {
	var answer Bucket
	return answer, c.change(ctx, request{call: "RemoveBucketAlias", body: aliasChange{id, alias}}, &answer)
}

// AllowBucketKey adds the permissions that are true to what the key may do with the bucket and returns the bucket.
func (c *Client) AllowBucketKey(ctx context.Context, id, accessKeyID string, add Permissions) (Bucket, error) {
	return c.changeGrant(ctx, "AllowBucketKey", grantChange{id, accessKeyID, add})
}

// DenyBucketKey takes the permissions that are true from what the key may do with the bucket and returns the bucket.
func (c *Client) DenyBucketKey(ctx context.Context, id, accessKeyID string, remove Permissions) (Bucket, error) {
	return c.changeGrant(ctx, "DenyBucketKey", grantChange{id, accessKeyID, remove})
}

type grantChange struct {
	BucketID    string      `json:"bucketId"`
	AccessKeyID string      `json:"accessKeyId"`
	Permissions Permissions `json:"permissions"`
}

func (c *Client) changeGrant(ctx context.Context, call string, change grantChange) (Bucket, error) {
	var answer Bucket
	return answer, c.change(ctx, request{call: call, body: change}, &answer)
}

// CleanupIncompleteUploads aborts the unfinished uploads of a bucket that began at least olderThan seconds ago and
// returns how many there were.
func (c *Client) CleanupIncompleteUploads(ctx context.Context, id string, olderThan int64) (int, error) {
	body := struct {
		BucketID      string `json:"bucketId"`
		OlderThanSecs int64  `json:"olderThanSecs"`
	}{id, olderThan}
	var answer struct {
		UploadsDeleted int `json:"uploadsDeleted"`
	}
	err := c.change(ctx, request{call: "CleanupIncompleteUploads", body: body}, &answer)
	return answer.UploadsDeleted, err
}
