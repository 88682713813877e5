package s3

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/sigv4"
)

// script answers like a Garage node whose answers are known beforehand.
type script []*http.Response

// RoundTrip is the next answer.
func (s *script) RoundTrip(*http.Request) (*http.Response, error) {
	next := (*s)[0]
	*s = (*s)[1:]
	return next, nil
}

func says(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

func TestANodeThatLagsIsNotBelieved(t *testing.T) {
	noBucket := func() *http.Response {
		return says(http.StatusNotFound, "<Error><Code>NoSuchBucket</Code><Message>Bucket not found: b</Message></Error>")
	}
	noKey := func() *http.Response {
		return says(http.StatusNotFound, "<Error><Code>NoSuchKey</Code><Message>Key not found</Message></Error>")
	}
	cases := map[string]struct {
		reason   string
		method   string
		answers  script
		store    error // nil: it has the bucket
		status   int   // of the answer that is passed on, 0 when the request is refused
		wantCode string
	}{
		"the node knows no bucket, the store does": {
			"the client comes again and finds it", http.MethodGet, script{noBucket()}, nil, 0, "SlowDown",
		},
		"nobody knows the bucket":     {"it is gone", http.MethodGet, script{noBucket()}, errGone, http.StatusNotFound, ""},
		"the store does not answer":   {"no answer is not no bucket", http.MethodGet, script{noBucket()}, io.EOF, 0, "SlowDown"},
		"an object that is not there": {"a node that says so knows the bucket", http.MethodGet, script{noKey()}, io.EOF, http.StatusNotFound, ""},
		"HEAD, the node knows the bucket": {
			"the object is asked for again: the node may have learnt between the two", http.MethodHead,
			script{says(http.StatusNotFound, ""), says(http.StatusOK, ""), says(http.StatusNotFound, "")},
			io.EOF, http.StatusNotFound, "",
		},
		"HEAD, the node has just learnt of it": {
			"the second answer counts", http.MethodHead,
			script{says(http.StatusNotFound, ""), says(http.StatusOK, ""), says(http.StatusOK, "")},
			io.EOF, http.StatusOK, "",
		},
		"HEAD, the node lags": {
			"a 404 would mean that the object is not there", http.MethodHead,
			script{says(http.StatusNotFound, ""), says(http.StatusNotFound, "")},
			nil, 0, "SlowDown",
		},
		"HEAD, nobody knows the bucket": {
			"it is gone", http.MethodHead, script{says(http.StatusNotFound, ""), says(http.StatusNotFound, "")}, errGone, http.StatusNotFound, "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			x := lagging(t, c.method, &c.answers, func(context.Context, string) (bool, error) {
				if errors.Is(c.store, errGone) {
					return false, nil
				}
				return c.store == nil, c.store
			})
			response, err := x.ask(t.Context(), access.Operation{Name: "GetObject"})
			require.Empty(t, c.answers, c.reason)
			if c.wantCode != "" {
				require.Equal(t, c.wantCode, asError(err).Code, c.reason)
				require.Equal(t, "close", x.out.Header().Get("Connection"), "another connection may lead to another replica")
				return
			}
			require.NoError(t, err, c.reason)
			require.Equal(t, c.status, response.StatusCode, c.reason)
			require.NoError(t, response.Body.Close())
		})
	}
}

var errGone = errors.New("the store has no such bucket")

// lagging is an exchange for an object of the bucket b, with Garage's answers and the store's.
func lagging(t *testing.T, method string, answers http.RoundTripper, ask func(context.Context, string) (bool, error)) *exchange {
	t.Helper()
	endpoint, err := url.Parse("http://garage")
	require.NoError(t, err)
	h := New(Config{
		Transport: answers, HasBucket: ask, Now: time.Now,
		Signer: &sigv4.Signer{Endpoint: endpoint, Region: "r", AccessKeyID: "k", Secret: "s"},
	})
	request, err := http.NewRequestWithContext(t.Context(), method, "https://gateway/b/o", http.NoBody)
	require.NoError(t, err)
	return &exchange{handler: h, out: &response{ResponseWriter: httptest.NewRecorder()}, request: request, verified: &sigv4.Verified{Method: method, Bucket: "b", Key: "o", Header: http.Header{}, Body: &sigv4.Body{}}}
}

func TestABucketThatIsGoneIsNotAskedForAllTheTime(t *testing.T) {
	now, asked, exists := time.Now(), 0, false
	d := directory{now: func() time.Time { return now }, ask: func(context.Context, string) (bool, error) {
		asked++
		return exists, nil
	}}
	for range 100 {
		has, err := d.has(t.Context(), "b")
		require.NoError(t, err)
		require.False(t, has)
	}
	require.Equal(t, 1, asked)
	now, exists = now.Add(absentFor), true
	has, err := d.has(t.Context(), "b")
	require.NoError(t, err)
	require.True(t, has, "a bucket may be made")
	require.False(t, d.knows("b"), "that the store has it says nothing of this node")
	now = now.Add(-time.Hour)
	_, err = d.has(t.Context(), "b")
	require.NoError(t, err)
	require.Equal(t, 3, asked, "a clock that was put back hides nothing")
}
