package serving

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

const testBucket = "d8-test-logs-abcdefghijkl"

// TestAnSDKClientDoesItsWork runs what consumers do, in both addressing styles, against real Garage.
func TestAnSDKClientDoesItsWork(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	styles := map[string][]func(*s3.Options){
		"virtual host": {},
		"path":         {pathStyle},
		"cluster domain": {func(o *s3.Options) {
			o.BaseEndpoint = aws.String("https://s3.d8-system-s3.svc.cluster.local")
		}},
	}
	stories := map[string]func(*testing.T, *s3.Client, string){
		"objects": objects, "odd keys": oddKeys, "multipart": multipart, "presigned": presigned, "copies": copies,
		"lists and deletes": listsAndDeletes, "harmless questions": harmlessQuestions,
	}
	for style, options := range styles {
		for name, story := range stories {
			t.Run(style+"/"+name, func(t *testing.T) {
				prefix := strings.ReplaceAll(style+"/"+name+"/", " ", "-")
				story(t, r.s3(r.key(testBucket, access.ReadWrite), options...), prefix)
			})
		}
	}
}

func put(t *testing.T, client *s3.Client, key string, data []byte) *s3.PutObjectOutput {
	t.Helper()
	out, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(testBucket), Key: &key, Body: bytes.NewReader(data)})
	require.NoError(t, err)
	return out
}

func get(t *testing.T, client *s3.Client, key string) []byte {
	t.Helper()
	out, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(testBucket), Key: &key})
	require.NoError(t, err)
	data, err := io.ReadAll(out.Body)
	require.NoError(t, err)
	require.NoError(t, out.Body.Close())
	return data
}

func pattern(size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * 2654435761 >> 7)
	}
	return data
}

func objects(t *testing.T, client *s3.Client, prefix string) {
	for _, size := range []int{0, 1, 3071, 3072, 1 << 20, 3<<20 + 17} {
		key := fmt.Sprint(prefix, size)
		data := pattern(size)
		out, err := client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: aws.String(testBucket), Key: &key, Body: bytes.NewReader(data), ContentType: aws.String("text/x-test"),
			Metadata: map[string]string{"colour": "blue  green"},
		})
		require.NoError(t, err)
		require.Empty(t, aws.ToString(out.VersionId), "buckets keep no versions")
		require.Equal(t, data, get(t, client, key), "size %d", size)
		head, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{
			Bucket: aws.String(testBucket), Key: &key, ChecksumMode: types.ChecksumModeEnabled,
		})
		require.NoError(t, err)
		require.EqualValues(t, size, *head.ContentLength)
		require.Equal(t, "text/x-test", *head.ContentType)
		require.Equal(t, *out.ETag, *head.ETag)
		require.NotEmpty(t, aws.ToString(head.ChecksumCRC32), "Garage keeps the checksum that the SDK sent")
	}
	key := fmt.Sprint(prefix, 1<<20)
	ranged, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(testBucket), Key: &key, Range: aws.String("bytes=1000-1999")})
	require.NoError(t, err)
	data, err := io.ReadAll(ranged.Body)
	require.NoError(t, err)
	require.Equal(t, pattern(1 << 20)[1000:2000], data)
	require.Equal(t, "bytes 1000-1999/1048576", *ranged.ContentRange)

	_, err = client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(testBucket), Key: &key, Range: aws.String("bytes=5000000-")})
	requireCode(t, err, "InvalidRange")
	_, err = client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(testBucket), Key: aws.String(prefix + "absent")})
	requireCode(t, err, "NoSuchKey")
	_, err = client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String(testBucket), Key: aws.String(prefix + "absent")})
	requireCode(t, err, "NotFound")
	_, err = client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(testBucket), Key: &key, IfNoneMatch: aws.String("*")})
	var failure interface{ HTTPStatusCode() int }
	require.ErrorAs(t, err, &failure)
	require.Equal(t, http.StatusNotModified, failure.HTTPStatusCode())
}

func oddKeys(t *testing.T, client *s3.Client, prefix string) {
	for _, key := range []string{
		"a b", "a+b", "ä/ö", "a//b", "a/../b", "./a", "a%2Fb", "a?b#c&d=e", "~*'()!@$;,", "日本", "/leading", "trailing/", "a\\b", "a\tb",
	} {
		full := prefix + key
		if strings.HasPrefix(key, "/") {
			full = key + prefix
		}
		put(t, client, full, []byte(key))
		require.Equal(t, key, string(get(t, client, full)), "key %q", full)
	}
	out, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(testBucket), Prefix: aws.String(prefix)})
	require.NoError(t, err)
	require.Len(t, out.Contents, 13)
}

func multipart(t *testing.T, client *s3.Client, prefix string) {
	key := prefix + "big"
	created, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: aws.String(testBucket), Key: &key})
	require.NoError(t, err)
	data := pattern(5<<20 + 5)
	var parts []types.CompletedPart
	for number := int32(1); number <= 2; number++ {
		part, err := client.UploadPart(t.Context(), &s3.UploadPartInput{
			Bucket: aws.String(testBucket), Key: &key, UploadId: created.UploadId, PartNumber: &number, Body: bytes.NewReader(data),
		})
		require.NoError(t, err)
		parts = append(parts, types.CompletedPart{ETag: part.ETag, PartNumber: &number, ChecksumCRC32: part.ChecksumCRC32})
	}
	listed, err := client.ListParts(t.Context(), &s3.ListPartsInput{Bucket: aws.String(testBucket), Key: &key, UploadId: created.UploadId})
	require.NoError(t, err)
	require.Len(t, listed.Parts, 2)
	uploads, err := client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: aws.String(testBucket), Prefix: &key})
	require.NoError(t, err)
	require.Len(t, uploads.Uploads, 1)
	completed, err := client.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
		Bucket: aws.String(testBucket), Key: &key, UploadId: created.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(strings.Trim(*completed.ETag, `"`), "-2"))
	require.Equal(t, append(data, data...), get(t, client, key))

	copied, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: aws.String(testBucket), Key: &key})
	require.NoError(t, err)
	_, err = client.UploadPartCopy(t.Context(), &s3.UploadPartCopyInput{
		Bucket: aws.String(testBucket), Key: &key, UploadId: copied.UploadId, PartNumber: aws.Int32(1),
		CopySource: aws.String(testBucket + "/" + key), CopySourceRange: aws.String("bytes=0-6000000"),
	})
	require.NoError(t, err)
	_, err = client.AbortMultipartUpload(t.Context(), &s3.AbortMultipartUploadInput{Bucket: aws.String(testBucket), Key: &key, UploadId: copied.UploadId})
	require.NoError(t, err)
}

func presigned(t *testing.T, client *s3.Client, prefix string) {
	key := prefix + "a b+c"
	plain, isHTTP := client.Options().HTTPClient.(*http.Client)
	require.True(t, isHTTP)
	do := func(method, url string, header http.Header, body string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		require.NoError(t, err)
		for name, values := range header {
			if name != "Host" {
				request.Header[name] = values
			}
		}
		response, err := plain.Do(request)
		require.NoError(t, err)
		data, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, string(data)
	}
	signer := s3.NewPresignClient(client)
	upload, err := signer.PresignPutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(testBucket), Key: &key})
	require.NoError(t, err)
	status, answer := do(http.MethodPut, upload.URL, upload.SignedHeader, "presigned data")
	require.Equal(t, http.StatusOK, status, answer)

	download, err := signer.PresignGetObject(t.Context(), &s3.GetObjectInput{
		Bucket: aws.String(testBucket), Key: &key, ResponseContentType: aws.String("text/x-other"),
	})
	require.NoError(t, err)
	status, answer = do(http.MethodGet, download.URL, download.SignedHeader, "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "presigned data", answer)

	status, answer = do(http.MethodGet, strings.Replace(download.URL, "x-other", "x-evil", 1), nil, "")
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, answer, "SignatureDoesNotMatch")
	status, _ = do(http.MethodDelete, download.URL, nil, "")
	require.Equal(t, http.StatusForbidden, status, "the method is signed")
}

func copies(t *testing.T, client *s3.Client, prefix string) {
	put(t, client, prefix+"from ä", []byte("copied"))
	_, err := client.CopyObject(t.Context(), &s3.CopyObjectInput{
		Bucket: aws.String(testBucket), Key: aws.String(prefix + "to"), CopySource: aws.String(testBucket + "/" + prefix + "from%20%C3%A4"),
	})
	require.NoError(t, err)
	require.Equal(t, "copied", string(get(t, client, prefix+"to")))
	_, err = client.CopyObject(t.Context(), &s3.CopyObjectInput{
		Bucket: aws.String(testBucket), Key: aws.String(prefix + "to"), CopySource: aws.String("d8-other-logs-abcdefghijkl/secret"),
	})
	requireCode(t, err, "AccessDenied")
}

func listsAndDeletes(t *testing.T, client *s3.Client, prefix string) {
	var identifiers []types.ObjectIdentifier
	for i := range 25 {
		key := fmt.Sprintf("%sdir-%d/%02d", prefix, i%2, i)
		put(t, client, key, []byte("x"))
		identifiers = append(identifiers, types.ObjectIdentifier{Key: &key})
	}
	pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{
		Bucket: aws.String(testBucket), Prefix: aws.String(prefix), MaxKeys: aws.Int32(10),
	})
	found := 0
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		found += len(page.Contents)
	}
	require.Equal(t, 25, found)
	old, err := client.ListObjects(t.Context(), &s3.ListObjectsInput{Bucket: aws.String(testBucket), Prefix: aws.String(prefix), Delimiter: aws.String("/")})
	require.NoError(t, err)
	require.Len(t, old.CommonPrefixes, 2)

	none, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(testBucket), Prefix: aws.String(prefix), MaxKeys: aws.Int32(0)})
	require.NoError(t, err)
	require.Empty(t, none.Contents)
	require.False(t, *none.IsTruncated)
	require.EqualValues(t, 0, *none.MaxKeys)
	require.Equal(t, prefix, *none.Prefix)

	_, err = client.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: aws.String(testBucket), Delete: &types.Delete{
		Objects: []types.ObjectIdentifier{identifiers[0], {Key: identifiers[1].Key, VersionId: aws.String("3sL4kqtJlcpXroDTDmJ")}},
	}})
	requireCode(t, err, "NoSuchVersion")
	get(t, client, *identifiers[0].Key) // nothing was deleted
	_, err = client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(testBucket), Key: identifiers[0].Key})
	require.NoError(t, err)
	deleted, err := client.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{
		Bucket: aws.String(testBucket), Delete: &types.Delete{Objects: identifiers[1:]},
	})
	require.NoError(t, err)
	require.Empty(t, deleted.Errors)
	require.Len(t, deleted.Deleted, 24)
}

func harmlessQuestions(t *testing.T, client *s3.Client, _ string) {
	ctx, bucket := t.Context(), aws.String(testBucket)
	buckets, err := client.ListBuckets(ctx, &s3.ListBucketsInput{})
	require.NoError(t, err)
	require.Len(t, buckets.Buckets, 1)
	require.Equal(t, testBucket, *buckets.Buckets[0].Name)
	head, err := client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: bucket})
	require.NoError(t, err)
	require.Equal(t, names.Region, aws.ToString(head.BucketRegion))
	versioning, err := client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: bucket})
	require.NoError(t, err)
	require.Empty(t, versioning.Status)
	location, err := client.GetBucketLocation(ctx, &s3.GetBucketLocationInput{Bucket: bucket})
	require.NoError(t, err)
	require.EqualValues(t, names.Region, location.LocationConstraint)
	acl, err := client.GetBucketAcl(ctx, &s3.GetBucketAclInput{Bucket: bucket})
	require.NoError(t, err)
	require.Len(t, acl.Grants, 1)
	require.Equal(t, types.TypeCanonicalUser, acl.Grants[0].Grantee.Type)
	_, err = client.PutBucketAcl(ctx, &s3.PutBucketAclInput{Bucket: bucket, ACL: types.BucketCannedACLPrivate})
	require.NoError(t, err)
	_, err = client.PutBucketAcl(ctx, &s3.PutBucketAclInput{Bucket: bucket, ACL: types.BucketCannedACLPublicRead})
	requireCode(t, err, "AccessControlListNotSupported")
	tags, err := client.GetObjectTagging(ctx, &s3.GetObjectTaggingInput{Bucket: bucket, Key: aws.String("any")})
	require.NoError(t, err)
	require.Empty(t, tags.TagSet)
}

// requireCode checks the S3 error code, as an SDK's user sees it.
func requireCode(t testing.TB, err error, code string) smithy.APIError {
	t.Helper()
	var failure smithy.APIError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, code, failure.ErrorCode(), failure.ErrorMessage())
	return failure
}

// eventually asks until the answer is yes.
func eventually(t testing.TB, what string, ask func() bool) {
	t.Helper()
	require.Eventually(t, ask, waitLimit, waitTick, what)
}

const (
	waitLimit = 20 * time.Second
	waitTick  = 50 * time.Millisecond
)
