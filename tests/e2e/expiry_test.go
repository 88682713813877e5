package e2e

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

// longestLife of a key that this test is ready to wait for.
const longestLife = 2 * time.Minute

func (s *story) expires(t *testing.T) {
	d := s.door(t)
	bucket := bucketName(t, mainBucket)
	allow(t, "host", names.ReadSubresource, names.WriteSubresource)
	key, err := d.of("host", mainBucket, "").Retrieve(t.Context())
	require.NoError(t, err)
	life := time.Until(key.Expires)
	require.Less(t, life, longestLife, "the sandbox's keys live too long to wait for their end: bin/sandbox up --key-lifetime 30s")

	group, ctx := errgroup.WithContext(t.Context())
	group.Go(func() error { return s.untilExpired(ctx, d.s3(static(key)), bucket, key) })
	group.Go(func() error { return s.acrossExpiry(ctx, d, bucket, 2*life+life/2) })
	require.NoError(t, group.Wait())
}

// untilExpired uses a key until it is refused: with ExpiredToken, and not before the announced end.
func (*story) untilExpired(ctx context.Context, client *s3.Client, bucket string, key aws.Credentials) error {
	if err := put(ctx, client, bucket, "expiry/old", []byte("old")); err != nil {
		return fmt.Errorf("a fresh key: %w", err)
	}
	err := site.Await(ctx, stage.Wish{What: "the key to expire", Limit: longestLife + shortLimit, Look: func(ctx context.Context) (bool, string, error) {
		_, err := get(ctx, client, bucket, "expiry/old")
		return code(err) == "ExpiredToken", code(err), nil
	}})
	if err != nil {
		return err
	}
	if early := time.Until(key.Expires); early > 0 {
		return fmt.Errorf("the key ended %s before its announced end", early)
	}
	return nil
}

// acrossExpiry is a client that goes on for longer than a key lives; nothing may fail.
func (*story) acrossExpiry(ctx context.Context, d door, bucket string, length time.Duration) error {
	var mu sync.Mutex // the SDK may fetch a key ahead of its need
	seen := map[string]bool{}
	inner := d.of("host", mainBucket, "")
	counted := aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		key, err := inner.Retrieve(ctx)
		mu.Lock()
		defer mu.Unlock()
		seen[key.AccessKeyID] = true
		return key, err
	})
	client := d.s3(aws.NewCredentialsCache(counted))
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	rounds := 0
	for end := time.Now().Add(length); time.Now().Before(end); rounds++ {
		content := fmt.Appendf(nil, "round %d", rounds)
		if err := put(ctx, client, bucket, "expiry/living", content); err != nil {
			return fmt.Errorf("round %d: %w", rounds, err)
		}
		read, err := get(ctx, client, bucket, "expiry/living")
		if err != nil || !bytes.Equal(content, read) {
			return fmt.Errorf("round %d read %q: %w", rounds, read, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) < 3 {
		return fmt.Errorf("%d keys in %s: the client did not cross the end of two", len(seen), length)
	}
	return nil
}
