package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

// takesBack takes a right away while a key with it lives: gateways refuse the key before its time, and say why.
func (s *story) takesBack(t *testing.T) {
	ctx := t.Context()
	d := s.door(t)
	bucket := bucketName(t, mainBucket)
	c := allow(t, "deprived", names.ReadSubresource, names.WriteSubresource)
	bystander, err := d.of("host", mainBucket, "").Retrieve(ctx)
	require.NoError(t, err)
	key, err := d.of("deprived", mainBucket, "").Retrieve(ctx)
	require.NoError(t, err)
	require.NoError(t, put(ctx, d.s3(static(key)), bucket, "deprived", []byte("content")))

	require.NoError(t, c.Allow(ctx, site.Admin, names.ReadSubresource))
	require.NoError(t, awaitRevoked(ctx, d.s3(static(key)), bucket))
	require.True(t, time.Now().Before(key.Expires), "it was taken back, it did not run out")
	_, err = get(ctx, d.s3(static(bystander)), bucket, "deprived")
	require.NotContains(t, message(err), "taken away", "another's key is not touched")

	t.Run("a key for what is left works", func(t *testing.T) {
		_, err := get(ctx, d.s3(aws.NewCredentialsCache(d.of("deprived", mainBucket, ""))), bucket, "deprived")
		require.NoError(t, err)
	})
	t.Run("a right that is given back counts", func(t *testing.T) {
		require.NoError(t, c.Allow(ctx, site.Admin, names.ReadSubresource, names.WriteSubresource))
		require.NoError(t, site.Await(ctx, stage.Wish{What: "writes again", Limit: shortLimit, Look: func(ctx context.Context) (bool, string, error) {
			err := put(ctx, d.s3(d.of("deprived", mainBucket, "/write")), bucket, "deprived", []byte("again"))
			return err == nil, code(err), nil
		}}))
	})
}

// awaitRevoked waits until the key is refused because of what was taken away.
func awaitRevoked(ctx context.Context, client *s3.Client, bucket string) error {
	return site.Await(ctx, stage.Wish{What: "the key to be taken back", Limit: shortLimit, Look: func(ctx context.Context) (bool, string, error) {
		_, err := get(ctx, client, bucket, "deprived")
		return code(err) == "AccessDenied" && strings.Contains(message(err), "taken away"), code(err), nil
	}})
}

func message(err error) string {
	var coded smithy.APIError
	if errors.As(err, &coded) {
		return coded.ErrorMessage()
	}
	return ""
}
