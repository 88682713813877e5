package mover_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"
)

// strange are keys that have broken one tool or another, in no order.
func strange() []string {
	return []string{
		"plain", "a b", " leading", "trailing ", "a+b", "a%2Bb", "a%b", "100%", "%00", "//", "a//b", "a/b", "a/", "a", "a!", "a0", "/leading",
		"folder/", "folder/x", "ключ/ünïcödé", "日本語", "\U0001F600", "\uFFFD", "\uE000", "quote'\"<>&", "q?x=1&y#frag", "~*()[]{}|^`\\",
		"tab\tkey", "line\nkey", "return\rkey", "\x01control", "...", "\u00e9", "e\u0301", "A", "Z", "_", "=;:@$,",
		strings.Repeat("k", 471), strings.Repeat("я", 235),
	}
}

func TestAPassCopies(t *testing.T) {
	r := newRig(t)
	r.story(t, "strange keys", strangeKeys)
	r.story(t, "metadata", metadata)
	r.story(t, "objects in parts", inParts)
	r.story(t, "more than a page", pages)
	r.story(t, "changes and deletions", changes)
	r.story(t, "no bucket", noBucket)
	r.story(t, "single keys", singleKeys)
	r.story(t, "uploads", uploads)
	r.story(t, "slowly", slowly)
}

func strangeKeys(t *testing.T, r *rig) {
	bucket, kept := r.bucket(t), 0
	for i, key := range strange() {
		if err := r.source.tryPut(bucket, key, random(i*100), nil); err != nil {
			t.Logf("the source itself refuses %q: %v", key, err)
			continue
		}
		kept++
	}
	require.Greater(t, kept, len(strange())-6, "most keys are taken by the source")
	result := r.pass(t, bucket)
	require.EqualValues(t, kept, result.Objects)
	require.EqualValues(t, kept, result.Copied)
	r.requireEqual(t, bucket)
	require.EqualValues(t, kept, r.verify(t, bucket).Objects)

	for key := range r.source.etags(bucket) {
		r.source.remove(bucket, key)
	}
	require.EqualValues(t, kept, r.pass(t, bucket).Deleted)
	require.Empty(t, r.target.etags(bucket))
}

func metadata(t *testing.T, r *rig) {
	bucket := r.bucket(t)
	header := func(pairs ...string) func(*s3.Options) {
		return func(o *s3.Options) {
			for i := 0; i < len(pairs); i += 2 {
				o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue(pairs[i], pairs[i+1]))
			}
		}
	}
	full := header("Content-Type", "text/x-story; charset=utf-8", "Cache-Control", "no-cache, max-age=7", "Content-Disposition", `attachment; filename="a b"`,
		"Content-Language", "ru", "Content-Encoding", "gzip", "Expires", "Thu, 01 Dec 2033 16:00:00 GMT",
		"X-Amz-Meta-Owner", "someone", "X-Amz-Meta-Empty", "", "X-Amz-Meta-Spaces", "a  b", "X-Amz-Meta-Name", "ключ")
	r.source.put(bucket, "empty", nil, nil, full, plain)
	r.source.put(bucket, "inline", random(100), nil, full, plain)
	r.source.put(bucket, "held", random(100_000), nil, full, plain)
	r.source.put(bucket, "stream", random(3*mib+5), nil, full, plain)
	r.source.put(bucket, "no date", random(10), nil, header("Expires", "0"), plain)
	r.source.put(bucket, "no type", random(10), nil, plain)
	for _, algorithm := range types.ChecksumAlgorithm("").Values()[:5] {
		for _, size := range []int{10, 2*mib + 1} {
			r.source.put(bucket, fmt.Sprint(algorithm, size), random(size), func(in *s3.PutObjectInput) { in.ChecksumAlgorithm = algorithm })
		}
	}
	r.pass(t, bucket)
	r.requireEqual(t, bucket)
	require.Zero(t, r.verify(t, bucket).Mended)
}

func inParts(t *testing.T, r *rig) {
	bucket := r.bucket(t)
	parts := [][]byte{random(5 * mib), random(5*mib + 1), random(6 * mib), random(7)}
	for name, checksum := range map[string]struct {
		algorithm types.ChecksumAlgorithm
		kind      types.ChecksumType
	}{
		"none":       {},
		"crc32":      {types.ChecksumAlgorithmCrc32, types.ChecksumTypeComposite},
		"crc32 full": {types.ChecksumAlgorithmCrc32, types.ChecksumTypeFullObject},
		"crc32c":     {types.ChecksumAlgorithmCrc32c, types.ChecksumTypeComposite},
		"crc64":      {types.ChecksumAlgorithmCrc64nvme, types.ChecksumTypeFullObject},
		"sha1":       {types.ChecksumAlgorithmSha1, types.ChecksumTypeComposite},
		"sha256":     {types.ChecksumAlgorithmSha256, types.ChecksumTypeComposite},
	} {
		r.source.putParts(bucket, name, parts, func(in *s3.CreateMultipartUploadInput) {
			in.ChecksumAlgorithm, in.ChecksumType = checksum.algorithm, checksum.kind
			in.ContentType, in.Metadata = aws.String("text/parts"), map[string]string{"owner": "someone"}
		})
	}
	r.source.putParts(bucket, "one small part", [][]byte{random(9)}, nil)
	_, err := r.source.s3.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: &bucket, Key: aws.String("copied"), CopySource: aws.String(bucket + "/none")})
	require.NoError(t, err)
	r.pass(t, bucket)
	r.requireEqual(t, bucket)
	for key := range r.source.etags(bucket) {
		require.Equal(t, r.source.partSizes(bucket, key), r.target.partSizes(bucket, key), "parts of %q", key)
	}
	require.Zero(t, r.verify(t, bucket).Mended)
}

func pages(t *testing.T, r *rig) {
	const count = 2_300 // of 1 000 a page
	bucket := r.bucket(t)
	for i := range count {
		key := fmt.Sprintf("key-%05d", i)
		switch {
		case i%7 == 0: // only there
			r.target.put(bucket, key, []byte("gone"), nil)
		case i%3 == 0: // other there
			r.target.put(bucket, key, []byte("old"), nil)
			fallthrough
		default:
			r.source.put(bucket, key, []byte(key), nil)
		}
	}
	result := r.pass(t, bucket)
	gone := (count + 6) / 7
	require.EqualValues(t, count-gone, result.Objects)
	require.EqualValues(t, count-gone, result.Copied)
	require.EqualValues(t, gone, result.Deleted)
	require.Equal(t, r.source.etags(bucket), r.target.etags(bucket))
	result2 := r.verify(t, bucket)
	require.EqualValues(t, count-gone, result2.Objects)
	require.Zero(t, result2.Mended)
}

func changes(t *testing.T, r *rig) {
	bucket := r.bucket(t)
	for _, key := range []string{"same", "other content", "other metadata", "deleted", "deleted and made again", "now in parts"} {
		r.source.put(bucket, key, []byte(key), nil)
	}
	r.source.putParts(bucket, "no more in parts", [][]byte{random(5 * mib), random(1)}, nil)
	r.pass(t, bucket)
	r.requireEqual(t, bucket)

	r.source.put(bucket, "other content", []byte("new"), nil)
	r.source.put(bucket, "other metadata", []byte("other metadata"), func(in *s3.PutObjectInput) { in.ContentType = aws.String("text/new") })
	r.source.remove(bucket, "deleted")
	r.source.remove(bucket, "deleted and made again")
	r.source.put(bucket, "deleted and made again", []byte("again"), nil)
	r.source.putParts(bucket, "now in parts", [][]byte{random(5 * mib), random(1)}, nil)
	r.source.put(bucket, "no more in parts", random(2*mib), nil)
	r.pass(t, bucket)
	r.requireEqual(t, bucket)

	require.Eventually(t, func() bool { return r.pass(t, bucket).Copied == 0 }, time.Minute, time.Second, "what has been equal for a while is left alone")
	require.Zero(t, r.verify(t, bucket).Followed)
}

func noBucket(t *testing.T, r *rig) {
	r.source.cluster.CreateBucket(t, "only-at-the-source")
	r.target.cluster.CreateBucket(t, "only-at-the-target")
	r.target.put("only-at-the-target", "key", []byte("kept"), nil)
	for _, bucket := range []string{"only-at-the-source", "only-at-the-target"} {
		_, err := r.mover.Pass(t.Context(), bucket)
		require.ErrorContains(t, err, bucket)
		_, err = r.mover.Verify(t.Context(), bucket)
		require.ErrorContains(t, err, bucket)
	}
	require.Len(t, r.target.etags("only-at-the-target"), 1, "a bucket that is not there is no empty bucket")
}
