package sigv4

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
)

// The figures of AWS's documentation of Signature Version 4 for S3: one key, one moment.
const (
	exampleID     = "AKIAIOSFODNN7EXAMPLE"
	exampleSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	exampleScope  = exampleID + "/20130524/us-east-1/s3/aws4_request"
	exampleDate   = "20130524T000000Z"
)

var exampleTime = time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)

func exampleVerifier() *Verifier {
	return &Verifier{
		Domains: []string{"s3.amazonaws.com"},
		Lookup: func(id string) (string, error) {
			if id != exampleID {
				return "", access.ErrUnknownKey
			}
			return exampleSecret, nil
		},
	}
}

// received makes a request as a server has it.
func received(method, uri string, body io.Reader, headers ...string) *http.Request {
	r := httptest.NewRequest(method, "http://s3.amazonaws.com/", body)
	r.RequestURI = uri
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	return r
}

func authorized(signed, signature string) string {
	return "Authorization: AWS4-HMAC-SHA256 Credential=" + exampleScope + ",SignedHeaders=" + signed + ",Signature=" + signature
}

func TestPublishedExamples(t *testing.T) {
	const (
		host = "Host: examplebucket.s3.amazonaws.com"
		date = "X-Amz-Date: " + exampleDate
		none = "X-Amz-Content-Sha256: " + emptySum
	)
	cases := map[string]struct {
		request *http.Request
		key     string
	}{
		"get object": {received("GET", "/test.txt", nil, host, date, none, "Range: bytes=0-9",
			authorized("host;range;x-amz-content-sha256;x-amz-date", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")), "test.txt"},
		"put object": {received("PUT", "/test$file.text", strings.NewReader("Welcome to Amazon S3."), host, date, "Date: Fri, 24 May 2013 00:00:00 GMT",
			"X-Amz-Storage-Class: REDUCED_REDUNDANCY", "X-Amz-Content-Sha256: 44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
			authorized("date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")), "test$file.text"},
		"get lifecycle": {received("GET", "/?lifecycle", nil, host, date, none,
			authorized("host;x-amz-content-sha256;x-amz-date", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")), ""},
		"list objects": {received("GET", "/?max-keys=2&prefix=J", nil, host, date, none,
			authorized("host;x-amz-content-sha256;x-amz-date", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")), ""},
		"presigned get": {received("GET", "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="+strings.ReplaceAll(exampleScope, "/", "%2F")+
			"&X-Amz-Date="+exampleDate+"&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
			nil, host), "test.txt"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			verified, err := exampleVerifier().Verify(c.request, exampleTime)
			require.NoError(t, err)
			assert.Equal(t, exampleID, verified.AccessKeyID)
			assert.Equal(t, "examplebucket", verified.Bucket)
			assert.Equal(t, c.key, verified.Key)
			for _, header := range []string{"Authorization", "X-Amz-Date", "X-Amz-Content-Sha256"} {
				assert.Empty(t, verified.Header.Get(header), "the signature goes no further")
			}
		})
	}
}

func publishedChunks(body string, headers ...string) *http.Request {
	return received("PUT", "/examplebucket/chunkObject.txt", strings.NewReader(body), append([]string{
		"Host: s3.amazonaws.com", "X-Amz-Date: " + exampleDate, "Content-Encoding: aws-chunked",
		"X-Amz-Decoded-Content-Length: 66560", "X-Amz-Storage-Class: REDUCED_REDUNDANCY",
	}, headers...)...)
}

func publishedBody(first, second, last, trailer string) string {
	return "10000;chunk-signature=" + first + "\r\n" + strings.Repeat("a", 65536) + "\r\n" +
		"400;chunk-signature=" + second + "\r\n" + strings.Repeat("a", 1024) + "\r\n" +
		"0;chunk-signature=" + last + "\r\n" + trailer + "\r\n"
}

func TestPublishedChunks(t *testing.T) {
	body := publishedBody("ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
		"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
		"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9", "")
	r := publishedChunks(body, "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "Content-Length: 66824",
		authorized("content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class",
			"4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"))
	r.Header.Del("Content-Length") // as a server keeps it
	r.ContentLength = 66824
	verified, err := exampleVerifier().Verify(r, exampleTime)
	require.NoError(t, err)
	assert.Equal(t, PayloadSigned, verified.Payload)
	assert.Empty(t, verified.Header.Get("Content-Encoding"))
	data, err := io.ReadAll(verified.Body)
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("a", 66560), string(data))
}

func TestPublishedTrailer(t *testing.T) {
	body := publishedBody("b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
		"1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
		"2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
		"x-amz-checksum-crc32c:sOO8/Q==\n\r\nx-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n")
	r := publishedChunks(body, "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", "X-Amz-Trailer: x-amz-checksum-crc32c",
		authorized("content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;x-amz-trailer",
			"106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"))
	verified, err := exampleVerifier().Verify(r, exampleTime)
	require.NoError(t, err)
	data, err := io.ReadAll(verified.Body)
	require.NoError(t, err)
	assert.Len(t, data, 66560)
	name, value := verified.Body.Trailer()
	assert.Equal(t, "x-amz-checksum-crc32c", name)
	assert.Equal(t, "sOO8/Q==", value)
}
