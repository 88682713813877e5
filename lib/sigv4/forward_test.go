package sigv4

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
)

const (
	innerID     = "system-s3-internal"
	innerSecret = "internal-secret"
)

// arrived is what a backend received.
type arrived struct {
	*http.Request

	uri  string
	body string
}

// backend stands where Garage does and keeps what arrives. Signatures are checked with the SDK's signer.
func backend(t *testing.T) (*Signer, chan arrived) {
	t.Helper()
	got := make(chan arrived, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			body = []byte("broken off: " + err.Error())
		}
		got <- arrived{r, r.RequestURI, string(body)}
	}))
	t.Cleanup(server.Close)
	endpoint, err := url.Parse(server.URL)
	require.NoError(t, err)
	return &Signer{Endpoint: endpoint, Region: "us-east-1", AccessKeyID: innerID, Secret: innerSecret}, got
}

// checkSignature signs what arrived with the SDK, as Garage reads it, and compares.
func checkSignature(t *testing.T, r arrived) {
	t.Helper()
	decoded, err := url.PathUnescape(strings.SplitN(r.uri, "?", 2)[0])
	require.NoError(t, err)
	again := &http.Request{
		Method: r.Method, Host: r.Host, Header: http.Header{},
		URL: &url.URL{Scheme: "http", Host: r.Host, Path: decoded, RawPath: escape(decoded, true), RawQuery: r.URL.RawQuery},
	}
	for name, values := range r.Header {
		if strings.HasPrefix(name, "X-Amz-") {
			again.Header[name] = values
		}
	}
	at, err := time.Parse(timeFormat, r.Header.Get("X-Amz-Date"))
	require.NoError(t, err)
	credentials := aws.Credentials{AccessKeyID: innerID, SecretAccessKey: innerSecret}
	require.NoError(t, rawSigner().SignHTTP(context.Background(), credentials, again, r.Header.Get("X-Amz-Content-Sha256"), "s3", "us-east-1", at))
	assert.Equal(t, again.Header.Get("Authorization"), r.Header.Get("Authorization"))
}

// forward carries a client's request through to the backend.
func forward(t *testing.T, r *http.Request) (arrived, error) {
	t.Helper()
	signer, got := backend(t)
	verified, err := exampleVerifier().Verify(r, exampleTime)
	require.NoError(t, err)
	op, err := access.Classify(verified.Request())
	require.NoError(t, err)
	out, err := signer.Forward(t.Context(), verified, op, exampleTime)
	if err != nil {
		return arrived{}, err
	}
	response, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(out)
	if err != nil {
		<-got
		return arrived{}, err
	}
	require.NoError(t, response.Body.Close())
	result := <-got
	checkSignature(t, result)
	return result, nil
}

func TestForwardHead(t *testing.T) {
	const base = "https://s3.amazonaws.com/examplebucket/"
	cases := map[string]struct {
		request *http.Request
		uri     string
		has     map[string]string
		reason  string
	}{
		"get": {
			newClient().sign(t, "GET", base+"a/b", "", nil, "Range: bytes=0-1", "If-Match: e", "Accept: */*", "Cookie: c", "X-Amz-Security-Token: s"),
			"/examplebucket/a/b",
			map[string]string{"Range": "bytes=0-1", "If-Match": "e", "Accept": "", "Cookie": "", "X-Amz-Security-Token": "", "X-Amz-Content-Sha256": emptySum},
			"only what Garage has a use for",
		},
		"list": {
			newClient().sign(t, "GET", base+"?list-type=2&prefix=a%20b%2F%2B&x-id=x&delimiter=", "", nil),
			"/examplebucket?list-type=2&prefix=a%20b%2F%2B", nil, "encoded anew, empty values left out",
		},
		"virtual host": {
			newClient().sign(t, "HEAD", "https://examplebucket.s3.amazonaws.com/a", "", nil),
			"/examplebucket/a", nil, "path-style inside",
		},
		"odd key": {
			newClient().sign(t, "GET", base+"a+b%20c%25/%C3%B6/..//x~!", "", nil),
			"/examplebucket/a%2Bb%20c%25/%C3%B6/..//x~%21", nil, "the same key in Garage's spelling",
		},
		"key with leading slashes": {
			newClient().sign(t, "GET", base+"//a", "", nil),
			"/examplebucket/%2F%2Fa", nil, "Garage drops those that are not encoded",
		},
		"key of a slash": {
			newClient().sign(t, "GET", base+"/", "", nil),
			"/examplebucket/%2F", nil, "must not become the bucket",
		},
		"copy": {
			newClient().sign(t, "PUT", base+"a", "", nil, "X-Amz-Copy-Source: examplebucket%2Fx%20y?versionId=null", "X-Amz-Meta-Spaces: a   b"),
			"/examplebucket/a",
			map[string]string{"X-Amz-Copy-Source": "/examplebucket/x%20y", "X-Amz-Meta-Spaces": "a   b"},
			"the source that was checked is the source that is copied",
		},
		"presigned": {
			newClient().presign(t, "GET", base+"a?response-content-type=x%2Fy", time.Hour),
			"/examplebucket/a?response-content-type=x%2Fy",
			map[string]string{"X-Amz-Content-Sha256": unsignedPayload},
			"signed by header now",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := forward(t, c.request)
			require.NoError(t, err)
			assert.Equal(t, c.uri, got.uri, c.reason)
			for header, value := range c.has {
				assert.Equal(t, value, got.Header.Get(header), header)
			}
			assert.Contains(t, got.Header.Get("Authorization"), "Credential="+innerID+"/")
			assert.NotContains(t, got.Header.Get("Authorization"), exampleID)
		})
	}
}

func TestForwardBodies(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 20_000) // 5 frames
	sum := sha256.Sum256([]byte("data"))
	cases := map[string]struct {
		request *http.Request
		body    string
		sha     string
		reason  string
	}{
		"hashed":   {newClient().sign(t, "PUT", object, "", []byte("data")), "data", hex.EncodeToString(sum[:]), "Garage checks the client's own hash"},
		"unsigned": {newClient().sign(t, "PUT", object, unsignedPayload, []byte("data")), "data", unsignedPayload, "nothing to check"},
		"empty":    {newClient().sign(t, "PUT", object, "", nil), "", emptySum, "an empty object"},
		"signed chunks": {
			newClient().upload(t, chunked{data: long, size: 65536}, true, nil), long, unsignedPayload,
			"verified here",
		},
		"unsigned chunks": {
			newClient().upload(t, chunked{data: long, size: 1 << 20}, false, nil), long, unsignedPayload,
			"nothing to check",
		},
		"signed chunks, trailer": {
			newClient().upload(t, chunked{data: long, size: 65536, trailer: crc32Trailer}, true, nil),
			chunked{data: long, size: frameSize, trailer: crc32Trailer}.String(), unsignedChunksTrailer, "Garage checks the checksum",
		},
		"unsigned chunks, trailer": {
			newClient().upload(t, chunked{data: long, size: 1 << 20, trailer: crc32Trailer}, false, nil),
			chunked{data: long, size: frameSize, trailer: crc32Trailer}.String(), unsignedChunksTrailer, "in chunks that Garage can bear",
		},
		"no bytes, trailer": {
			newClient().upload(t, chunked{data: "", size: 1, trailer: crc32Trailer}, true, nil),
			chunked{data: "", size: frameSize, trailer: crc32Trailer}.String(), unsignedChunksTrailer, "Garage checks the checksum",
		},
		"a whole frame, trailer": {
			newClient().upload(t, chunked{data: long[:frameSize], size: 1000, trailer: crc32Trailer}, true, nil),
			chunked{data: long[:frameSize], size: frameSize, trailer: crc32Trailer}.String(), unsignedChunksTrailer, "no empty frame",
		},
		"no bytes, signed chunks": {newClient().upload(t, chunked{data: "", size: 1}, true, nil), "", unsignedPayload, "an empty object"},
		"form":                    {simpleForm().request(t), "the file's bytes", unsignedPayload, "a PUT of unknown length"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := forward(t, c.request)
			require.NoError(t, err, c.reason)
			assert.Equal(t, c.body, got.body, c.reason)
			assert.Equal(t, c.sha, got.Header.Get("X-Amz-Content-Sha256"), c.reason)
			if c.sha == unsignedChunksTrailer {
				assert.Equal(t, "aws-chunked", got.Header.Get("Content-Encoding"))
				assert.Equal(t, "x-amz-checksum-crc32", got.Header.Get("X-Amz-Trailer"))
			} else {
				assert.Empty(t, got.Header.Get("Content-Encoding"))
				assert.Empty(t, got.Header.Get("X-Amz-Decoded-Content-Length"))
			}
			if name != "form" {
				assert.Equal(t, int64(len(c.body)), got.ContentLength, "so that Garage notices an end that comes too early")
			}
		})
	}
}

// A spoiled body never arrives whole, and the reason is kept for the client.
func TestForwardSpoiledBodies(t *testing.T) {
	tooLarge := simpleForm().allow(`["content-length-range",1,3]`)
	flip := func(s string) string { i := strings.LastIndex(s, "x"); return s[:i] + "y" + s[i+1:] }
	data := strings.Repeat("x", 200_000)
	for name, c := range map[string]struct {
		request *http.Request
		want    access.Error
	}{
		"signed chunks":          {newClient().upload(t, chunked{data: data, size: 65536}, true, flip), access.ErrSignature},
		"signed chunks, trailer": {newClient().upload(t, chunked{data: data, size: 65536, trailer: crc32Trailer}, true, replace("AAAAAA==", "AAAAAQ==")), access.ErrSignature},
		"no bytes":               {newClient().upload(t, chunked{data: "", size: 1}, true, replace(signatureIn, signatureIn+"0")), access.ErrSignature},
		"unsigned chunks":        {newClient().upload(t, chunked{data: data, size: 65536}, false, func(s string) string { return s[:len(s)-5] }), access.ErrIncompleteBody},
		"form":                   {tooLarge.request(t), access.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			signer, got := backend(t)
			verified, err := exampleVerifier().Verify(c.request, exampleTime)
			require.NoError(t, err)
			op, err := access.Classify(verified.Request())
			require.NoError(t, err)
			out, err := signer.Forward(t.Context(), verified, op, exampleTime)
			if err == nil {
				var response *http.Response
				response, err = (&http.Transport{DisableKeepAlives: true}).RoundTrip(out)
				assert.Contains(t, (<-got).body, "broken off", "the backend must see that it is not whole")
				if err == nil {
					require.NoError(t, response.Body.Close())
				}
			}
			require.ErrorIs(t, verified.Body.Err(), c.want)
		})
	}
}

func TestSignOwnRequest(t *testing.T) {
	signer, got := backend(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, signer.Endpoint.String()+"/?x=1&y=a%20b", nil)
	require.NoError(t, err)
	require.NoError(t, signer.Sign(r, exampleTime))
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	checkSignature(t, <-got)
}

func TestGarageTakesEveryWhiteSpaceForASpace(t *testing.T) {
	r := &http.Request{Host: "h", Header: http.Header{"X-Amz-Meta-A": {" a\tb\u00a0\u2003 c", "d"}}}
	assert.Equal(t, "host:h\nx-amz-meta-a:a b c,d\n", garageHeaders(r, []string{"host", "x-amz-meta-a"}))
}
