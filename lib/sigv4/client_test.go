package sigv4

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/stretchr/testify/require"
)

// client signs requests as the AWS SDK for Go does, so that signer and verifier have no code in common.
type client struct {
	secret  string
	region  string
	service string
	at      time.Time
}

func newClient() client {
	return client{secret: exampleSecret, region: "us-east-1", service: "s3", at: exampleTime}
}

func (c client) credentials() aws.Credentials {
	return aws.Credentials{AccessKeyID: exampleID, SecretAccessKey: c.secret}
}

// rawSigner signs paths as S3 wants them: encoded once.
func rawSigner() *v4.Signer {
	return v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
}

// sign makes a signed request and gives it the form in which a server receives it.
func (c client) sign(t *testing.T, method, url, hash string, body []byte, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	require.NoError(t, err)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Add(name, value)
	}
	if hash == "" {
		sum := sha256.Sum256(body)
		hash = hex.EncodeToString(sum[:])
	}
	r.Header.Set("X-Amz-Content-Sha256", hash)
	require.NoError(t, rawSigner().SignHTTP(context.Background(), c.credentials(), r, hash, c.service, c.region, c.at))
	return serverSide(r, body)
}

func (c client) presign(t *testing.T, method, url string, expires time.Duration, headers ...string) *http.Request {
	t.Helper()
	mark := "?"
	if strings.Contains(url, "?") {
		mark = "&"
	}
	r, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("%s%sX-Amz-Expires=%d", url, mark, int(expires.Seconds())), nil)
	require.NoError(t, err)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Add(name, value)
	}
	signed, extra, err := rawSigner().PresignHTTP(context.Background(), c.credentials(), r, unsignedPayload, c.service, c.region, c.at)
	require.NoError(t, err)
	sent, err := http.NewRequestWithContext(t.Context(), method, signed, nil)
	require.NoError(t, err)
	for name, values := range extra {
		if name != "Host" {
			sent.Header[name] = values
		}
	}
	return serverSide(sent, nil)
}

// serverSide is the request as net/http's server hands it to a handler.
func serverSide(r *http.Request, body []byte) *http.Request {
	got := httptest.NewRequest(r.Method, "http://"+r.URL.Host+"/", bytes.NewReader(body))
	got.RequestURI = r.URL.RequestURI()
	got.Header = r.Header.Clone()
	got.Header.Del("Host")
	got.Host = r.URL.Host
	return got
}

// chunked is a body in signed or unsigned chunks of a size, with a trailer if it has a name.
type chunked struct {
	data    string
	size    int
	chain   *chain // nil: unsigned
	trailer string // name:value
}

// sign is what a client appends to the head of a chunk: the chain does for signing what it does for verifying.
func (c chunked) sign(data string) string {
	if c.chain == nil {
		return ""
	}
	c.chain.chunk([]byte(data), "")
	return signatureIn + c.chain.previous
}

func (c chunked) String() string {
	var out strings.Builder
	for rest := c.data; rest != ""; {
		n := min(c.size, len(rest))
		fmt.Fprintf(&out, "%x%s\r\n%s\r\n", n, c.sign(rest[:n]), rest[:n])
		rest = rest[n:]
	}
	fmt.Fprintf(&out, "0%s\r\n", c.sign(""))
	if c.trailer != "" {
		out.WriteString(c.trailer + "\r\n")
		if c.chain != nil {
			c.chain.trailer(c.trailer+"\n", "")
			out.WriteString(trailerSign + ":" + c.chain.previous + "\r\n")
		}
	}
	out.WriteString("\r\n")
	return out.String()
}

// upload is a signed PUT of a chunked body; change spoils the body after it was signed.
func (c client) upload(t *testing.T, body chunked, signed bool, change func(string) string) *http.Request {
	t.Helper()
	hash := unsignedChunksTrailer
	if signed {
		hash = signedChunks
	}
	headers := []string{"Content-Encoding: aws-chunked", fmt.Sprintf("X-Amz-Decoded-Content-Length: %d", len(body.data))}
	if body.trailer != "" {
		name, _, _ := strings.Cut(body.trailer, ":")
		headers = append(headers, "X-Amz-Trailer: "+name)
		if signed {
			hash = signedChunksTrailer
		}
	}
	r := c.sign(t, "PUT", "https://s3.amazonaws.com/examplebucket/key", hash, nil, headers...)
	if signed {
		auth, err := parseAuthorization(r.Header.Get("Authorization"))
		require.NoError(t, err)
		auth.time = c.at
		body.chain = newChain(proof{key: auth.scope.key(c.secret), auth: auth})
	}
	text := body.String()
	if change != nil {
		text = change(text)
	}
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	return r
}
