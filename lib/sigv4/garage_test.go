package sigv4

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

// chain is client, verifier, signer and a real Garage.
type realChain struct {
	client client
	signer *Signer
}

func newRealChain(t *testing.T) realChain {
	t.Helper()
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, "examplebucket")
	endpoint, err := url.Parse(cluster.S3URL())
	require.NoError(t, err)
	c := newClient()
	c.at = time.Now().UTC().Truncate(time.Second)
	return realChain{c, &Signer{Endpoint: endpoint, Region: names.GarageRegion, AccessKeyID: cluster.KeyID, Secret: cluster.KeySecret}}
}

// do carries a request of the client to Garage and returns its answer.
func (c realChain) do(t *testing.T, r *http.Request) (*http.Response, string, error) {
	t.Helper()
	verified, err := exampleVerifier().Verify(r, c.client.at)
	require.NoError(t, err)
	op, err := access.Classify(verified.Request())
	require.NoError(t, err)
	out, err := c.signer.Forward(t.Context(), verified, op, time.Now())
	if err != nil {
		return nil, "", err
	}
	response, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(out)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response, string(body), verified.Body.Err()
}

func (c realChain) must(t *testing.T, method, target string, headers ...string) (*http.Response, string) {
	t.Helper()
	response, body, err := c.do(t, c.client.sign(t, method, target, "", nil, headers...))
	require.NoError(t, err)
	require.Less(t, response.StatusCode, 300, body)
	return response, body
}

func crcTrailer(data string) string {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(data)))
	return "x-amz-checksum-crc32:" + base64.StdEncoding.EncodeToString(sum[:])
}

func TestGarageTakesWhatIsForwarded(t *testing.T) {
	c := newRealChain(t)
	const base = "https://s3.amazonaws.com/examplebucket/"
	t.Run("bodies", func(t *testing.T) { testGarageBodies(t, c, base) })
	t.Run("spoiled bodies", func(t *testing.T) { testGarageSpoiled(t, c, base) })
	t.Run("keys", func(t *testing.T) { testGarageKeys(t, c, base) })
	t.Run("metadata", func(t *testing.T) { testGarageMetadata(t, c, base) })
	t.Run("form", func(t *testing.T) {
		form := simpleForm()
		verifier := exampleVerifier()
		verified, err := verifier.Verify(form.request(t), exampleTime)
		require.NoError(t, err)
		op, err := access.Classify(verified.Request())
		require.NoError(t, err)
		out, err := c.signer.Forward(t.Context(), verified, op, time.Now())
		require.NoError(t, err)
		response, err := http.DefaultTransport.RoundTrip(out)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
		_, body := c.must(t, "GET", base+"user/photo.jpg")
		assert.Equal(t, form.file, body)
	})
}

func testGarageBodies(t *testing.T, c realChain, base string) {
	t.Helper()
	long := strings.Repeat("0123456789abcdef", 200_000) // 3.2 MB: several of Garage's blocks
	for _, data := range []string{"", "x", long[:frameSize], long} {
		requests := map[string]*http.Request{
			"hashed":                   c.client.sign(t, "PUT", base+"key", "", []byte(data)),
			"unsigned":                 c.client.sign(t, "PUT", base+"key", unsignedPayload, []byte(data)),
			"signed chunks":            c.client.upload(t, chunked{data: data, size: 65536}, true, nil),
			"unsigned chunks":          c.client.upload(t, chunked{data: data, size: 65536}, false, nil),
			"signed chunks, trailer":   c.client.upload(t, chunked{data: data, size: 65536, trailer: crcTrailer(data)}, true, nil),
			"unsigned chunks, trailer": c.client.upload(t, chunked{data: data, size: 1 << 30, trailer: crcTrailer(data)}, false, nil),
			"presigned":                withBody(c.client.presign(t, "PUT", base+"key", time.Hour), data),
		}
		for name, r := range requests {
			what := fmt.Sprintf("%s, %d bytes", name, len(data))
			response, body, err := c.do(t, r)
			require.NoError(t, err, what)
			require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", what, body)
			response, body = c.must(t, "GET", base+"key", "X-Amz-Checksum-Mode: ENABLED")
			require.Equal(t, sha256.Sum256([]byte(data)), sha256.Sum256([]byte(body)), what)
			if strings.Contains(name, "trailer") {
				require.Equal(t, crcTrailer(data), "x-amz-checksum-crc32:"+response.Header.Get("X-Amz-Checksum-Crc32"), what)
			}
			require.Empty(t, response.Header.Get("Content-Encoding"), "aws-chunked is not kept: %s", what)
		}
	}
}

func withBody(r *http.Request, data string) *http.Request {
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(data)), int64(len(data))
	return r
}

func testGarageSpoiled(t *testing.T, c realChain, base string) {
	t.Helper()
	c.must(t, "DELETE", base+"key")
	data := strings.Repeat("x", 3_000_000)
	flip := func(s string) string { i := strings.LastIndex(s, "x"); return s[:i] + "y" + s[i+1:] }
	wrongHash := c.client.sign(t, "PUT", base+"key", emptySum, []byte("data"))
	for name, r := range map[string]*http.Request{
		"wrong hash":               wrongHash,
		"last signed chunk":        c.client.upload(t, chunked{data: data, size: 65536}, true, flip),
		"signed chunks, cut":       c.client.upload(t, chunked{data: data, size: 65536}, true, func(s string) string { return s[:len(s)/2] }),
		"wrong checksum":           c.client.upload(t, chunked{data: data, size: 65536, trailer: crc32Trailer}, true, nil),
		"wrong checksum, unsigned": c.client.upload(t, chunked{data: data, size: 65536, trailer: crc32Trailer}, false, nil),
		"no end":                   c.client.upload(t, chunked{data: data, size: 65536, trailer: crcTrailer(data)}, false, func(s string) string { return s[:strings.LastIndex(s, "0\r\n")] }),
	} {
		response, body, err := c.do(t, r)
		if err == nil {
			require.Equal(t, http.StatusBadRequest, response.StatusCode, "%s: %s", name, body)
		}
		response, _, err = c.do(t, c.client.sign(t, "HEAD", base+"key", "", nil))
		require.NoError(t, err)
		require.Equal(t, http.StatusNotFound, response.StatusCode, "%s must not be stored", name)
	}
}

func testGarageKeys(t *testing.T, c realChain, base string) {
	t.Helper()
	keys := []string{
		"plain", "a b", "a+b", "a%20b", "%", "a//b", "/a", "//a/", "/", "..", "../x", "./x", "x/../y", "a?b", "a#b", "a&b=c", "a;b", "ö/ж/漢/😀",
		"e\u0301", "!'()*", "[]{}|^`\\\"<>", "trailing/", "a\tb", "a\x01b", "~.-_", strings.Repeat("k", access.MaxKey),
	}
	for _, key := range keys {
		target := base + escape(key, true)
		response, body, err := c.do(t, c.client.sign(t, "PUT", target, "", []byte(key)))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode, "%q: %s", key, body)
		_, body = c.must(t, "GET", target)
		require.Equal(t, key, body, "each key is an object of its own")
	}
	for _, key := range keys {
		_, body := c.must(t, "GET", base+escape(key, true))
		require.Equal(t, key, body, "no key overwrote another")
		_, body = c.must(t, "GET", base+"?list-type=2&encoding-type=url&prefix="+escape(key, false))
		require.Contains(t, body, "<Key>"+escape(key, false)+"</Key>")
		c.must(t, "PUT", base+"copy", "X-Amz-Copy-Source: examplebucket/"+escape(key, true))
		_, body = c.must(t, "GET", base+"copy")
		require.Equal(t, key, body, "copies")
	}
	_, body := c.must(t, "GET", base+"?list-type=2")
	require.Equal(t, len(keys)+1, strings.Count(body, "<Key>"), "and the copy")
	for _, key := range keys {
		response, body, err := c.do(t, c.client.sign(t, "DELETE", base+escape(key, true), "", nil))
		require.NoError(t, err)
		require.Equal(t, http.StatusNoContent, response.StatusCode, "%q: %s", key, body)
	}
}

func testGarageMetadata(t *testing.T, c realChain, base string) {
	t.Helper()
	want := map[string]string{"X-Amz-Meta-A": "a  b   c", "X-Amz-Meta-Utf8": "\u00f6 \u6f22", "X-Amz-Meta-Wide": "a\u2003b", "Content-Type": "text/x; charset=utf-8", "Cache-Control": "no-store"}
	headers := make([]string, 0, len(want))
	for name, value := range want {
		headers = append(headers, name+": "+value)
	}
	c.must(t, "PUT", base+"meta", headers...)
	response, _ := c.must(t, "HEAD", base+"meta")
	for name, value := range want {
		assert.Equal(t, value, response.Header.Get(name), name)
	}
}
