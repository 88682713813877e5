package garage_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/garage"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	const noBucket = `{"code":"NoSuchBucket","message":"Bucket not found: x","region":"us-east-1","path":"/v2/GetBucketInfo"}`
	cases := map[string]struct {
		reason           string
		status           int
		body             string
		absent, conflict bool
		want             string
	}{
		"absent": {
			reason: "Garage names what is missing", status: http.StatusNotFound, body: noBucket,
			absent: true, want: "GetBucketInfo: NoSuchBucket: Bucket not found: x",
		},
		"404 of somebody else": {
			reason: "a proxy's 404 proves nothing about the bucket", status: http.StatusNotFound, body: "404 page not found",
			want: "GetBucketInfo: HTTP 404: 404 page not found",
		},
		"404 of another kind": {
			reason: "another thing is missing", status: http.StatusNotFound, body: `{"code":"NoSuchWorker","message":"x"}`,
			want: "NoSuchWorker",
		},
		"no quorum": {
			reason: "unknown is not absent", status: http.StatusServiceUnavailable,
			body: `{"code":"ServiceUnavailable","message":"Could not reach quorum"}`, want: "ServiceUnavailable: Could not",
		},
		"absence with a wrong status": {
			reason: "only both together prove it", status: http.StatusInternalServerError, body: noBucket, want: "NoSuchBucket",
		},
		"conflict": {
			reason: "a bucket that is not empty", status: http.StatusConflict, body: `{"code":"BucketNotEmpty","message":"x"}`,
			conflict: true, want: "BucketNotEmpty",
		},
		"broken JSON": {reason: "half an answer is no answer", status: http.StatusOK, body: `{"id":`, want: "decode the answer"},
		"too long": {
			reason: "memory is bounded", status: http.StatusOK, body: `"` + strings.Repeat("x", 17<<20) + `"`,
			want: "longer than",
		},
		"a long foreign error": {
			reason: "a message is bounded", status: http.StatusBadGateway, body: strings.Repeat("y", 4096), want: "HTTP 502",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			_, err := garage.New(server.URL, "token", server.Client()).GetBucketByID(t.Context(), "x")
			require.ErrorContains(t, err, c.want, c.reason)
			assert.Equal(t, c.absent, garage.IsAbsent(err), c.reason)
			assert.Equal(t, c.conflict, garage.IsConflict(err), c.reason)
			assert.Less(t, len(err.Error()), 1024, "messages are short")
		})
	}
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := garage.New(server.URL, "very-secret-token", server.Client()).GetBucketByAlias(ctx, "x")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.False(t, garage.IsAbsent(err), "silence is not absence")
	assert.NotContains(t, err.Error(), "very-secret-token")
}

func TestConnectAnswersMustMatch(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `[{"success":true}]`)
	}))
	defer server.Close()
	_, err := garage.New(server.URL, "token", server.Client()).ConnectClusterNodes(t.Context(), []string{"a@h:1", "b@h:1"})
	require.ErrorContains(t, err, "1 answers for 2 peers")
}
