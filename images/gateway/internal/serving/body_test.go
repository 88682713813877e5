package serving

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

// upload is a PUT whose body may differ from what was signed.
type upload struct {
	hash    string // x-amz-content-sha256
	headers map[string]string
	body    string
}

// send signs and sends the upload and returns the status and the answer.
func (u upload) send(t *testing.T, r *rig, key access.Key) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, names.S3URL+"/"+testBucket+"/spoiled", strings.NewReader(u.body))
	require.NoError(t, err)
	request.Header.Set("X-Amz-Content-Sha256", u.hash)
	for name, value := range u.headers {
		request.Header.Set(name, value)
	}
	credentials := aws.Credentials{AccessKeyID: key.AccessKeyID, SecretAccessKey: key.SecretAccessKey, SessionToken: key.SessionToken}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	require.NoError(t, signer.SignHTTP(t.Context(), credentials, request, u.hash, "s3", names.Region, time.Now()))
	response, err := r.http().Do(request)
	require.NoError(t, err)
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, string(data)
}

func TestASpoiledBodyIsRefusedAndStoresNothing(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	key := r.key(testBucket, access.ReadWrite)
	digest := sha256.Sum256([]byte("what was announced"))
	trailer := map[string]string{
		"Content-Encoding": "aws-chunked", "X-Amz-Decoded-Content-Length": "5", "X-Amz-Trailer": "x-amz-checksum-crc32",
	}
	cases := map[string]struct {
		reason string
		upload upload
		code   string
	}{
		"another body than announced": {
			"Garage checks the client's own hash", upload{hash: hex.EncodeToString(digest[:]), body: "what was received!"}, "XAmzContentSHA256Mismatch",
		},
		"no hash at all": {"", upload{hash: "garbage", body: "x"}, "InvalidArgument"},
		"garbage in place of chunks": {
			"", upload{hash: "STREAMING-UNSIGNED-PAYLOAD-TRAILER", headers: trailer, body: "this is not a chunk\r\n"}, "InvalidRequest",
		},
		"less than announced": {
			"", upload{hash: "STREAMING-UNSIGNED-PAYLOAD-TRAILER", headers: trailer, body: "2\r\nab\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n"}, "IncompleteBody",
		},
		"a wrong checksum": {
			"", upload{hash: "STREAMING-UNSIGNED-PAYLOAD-TRAILER", headers: trailer, body: "5\r\nabcde\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n"}, "BadDigest",
		},
		"an unsigned chunk where signed ones were announced": {
			"", upload{
				hash: "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", headers: map[string]string{"Content-Encoding": "aws-chunked", "X-Amz-Decoded-Content-Length": "5"},
				body: "5;chunk-signature=" + strings.Repeat("0", 64) + "\r\nabcde\r\n0;chunk-signature=" + strings.Repeat("0", 64) + "\r\n\r\n",
			}, "SignatureDoesNotMatch",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			status, answer := c.upload.send(t, r, key)
			require.Contains(t, answer, "<Code>"+c.code+"</Code>", c.reason)
			require.Less(t, status, 500, "the client's fault, not worth repeating")
			_, err := r.s3(key, noRetry).HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String(testBucket), Key: aws.String("spoiled")})
			requireCode(t, err, "NotFound")
		})
	}
}

func TestAnOversizedHeaderIsRefused(t *testing.T) {
	r := newRig(t, garagetest.StartWith(t, 1, garagetest.Options{Bare: true}), nil)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, names.S3URL+"/", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("X-Amz-Meta-Large", strings.Repeat("x", 2*maxHeader))
	response, err := r.http().Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode)
}
