package garage

import (
	"context"
	"net/url"
)

// Permissions of a key on a bucket.
type Permissions struct {
	Read  bool `json:"read"`
	Write bool `json:"write"`
	Owner bool `json:"owner"`
}

// KeyInfo is an S3 key of Garage. Its secret is never read back.
type KeyInfo struct {
	AccessKeyID string      `json:"accessKeyId"`
	Name        string      `json:"name"`
	Expired     bool        `json:"expired"`
	Buckets     []KeyBucket `json:"buckets"`
}

// KeyBucket is a bucket that a key was granted.
type KeyBucket struct {
	ID          string      `json:"id"`
	Permissions Permissions `json:"permissions"`
}

// Key is a key pair to import.
type Key struct {
	AccessKeyID     string `json:"accessKeyId"`
	SecretAccessKey string `json:"secretAccessKey"`
	Name            string `json:"name"`
}

// ImportKey creates a key with a chosen id and secret. IsConflict(err) when the id was ever used, deleted ids
// included.
func (c *Client) ImportKey(ctx context.Context, key Key) error {
	return c.change(ctx, request{call: "ImportKey", body: key}, nil)
}

// GetKeyInfo reads a key. IsAbsent(err) when there is none.
func (c *Client) GetKeyInfo(ctx context.Context, id string) (KeyInfo, error) {
	var answer KeyInfo
	return answer, c.read(ctx, "GetKeyInfo", url.Values{"id": {id}}, &answer)
}
