package serving

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
)

// What Garage answers otherwise than AWS, or overlooks.
func TestWhereGarageDiffers(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	client, bucket, key := r.s3(r.key(testBucket, access.ReadWrite)), aws.String(testBucket), aws.String("object")
	require.NoError(t, putting(testBucket)(t.Context(), client))

	t.Run("a list of no more than no keys", func(t *testing.T) {
		list, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: bucket, MaxKeys: aws.Int32(0), Prefix: aws.String("o b")})
		require.NoError(t, err)
		require.Empty(t, list.Contents)
		require.False(t, *list.IsTruncated)
		require.Zero(t, *list.KeyCount)
		require.Zero(t, *list.MaxKeys)
		require.Equal(t, "o b", *list.Prefix)
		old, err := client.ListObjects(t.Context(), &s3.ListObjectsInput{Bucket: bucket, MaxKeys: aws.Int32(0)})
		require.NoError(t, err)
		require.Empty(t, old.Contents)
		require.False(t, *old.IsTruncated)
	})
	t.Run("deleting a version deletes nothing", func(t *testing.T) {
		for code, object := range map[string]types.ObjectIdentifier{
			"NoSuchVersion":  {Key: key, VersionId: aws.String("3HL4kqtJvjVBH40Nrjfkd")},
			"NotImplemented": {Key: key, ETag: aws.String("e")},
		} {
			_, err := client.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{object}}})
			requireCode(t, err, code)
		}
		require.NoError(t, getting(testBucket)(t.Context(), client), "it is there")
	})
	t.Run("a condition of a read that fails has its code", func(t *testing.T) {
		_, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: key, IfMatch: aws.String("e")})
		requireCode(t, err, "PreconditionFailed")
	})
	t.Run("a part that is not there", func(t *testing.T) {
		_, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: key, PartNumber: aws.Int32(7)})
		requireCode(t, err, "InvalidPartNumber")
	})
	t.Run("an object without a type has the same one for GET and HEAD", func(t *testing.T) {
		_, err := client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: bucket, Key: aws.String("untyped"), Body: strings.NewReader("<html></html>"), ContentType: aws.String(""),
		})
		require.NoError(t, err)
		head, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: aws.String("untyped")})
		require.NoError(t, err)
		got, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: aws.String("untyped")})
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		require.Equal(t, *head.ContentType, *got.ContentType)
		overridden, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: key, ResponseContentType: aws.String("a/b")})
		require.NoError(t, err)
		require.Equal(t, "a/b", *overridden.ContentType)
	})
	t.Run("deleting many", func(t *testing.T) {
		out, err := client.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{
			{Key: key, VersionId: aws.String("null")}, {Key: aws.String("untyped")}, {Key: aws.String("never there")},
		}}})
		require.NoError(t, err)
		require.Len(t, out.Deleted, 3)
		requireCode(t, getting(testBucket)(t.Context(), client), "NoSuchKey")
	})
}
