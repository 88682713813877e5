package serving

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

// push sends a document to the admin port and returns the status and the answer.
func (r *rig) push(method, path, token, document string) (int, string) {
	r.t.Helper()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: r.ca.pool(), ServerName: names.S3Host, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(r.t.Context(), method, "https://"+r.server.AdminAddress()+path, strings.NewReader(document))
	require.NoError(r.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	require.NoError(r.t, err)
	answer, err := io.ReadAll(response.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, response.Body.Close())
	return response.StatusCode, string(answer)
}

func TestRevokedKeysAreRefusedAtOnce(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	writer, reader := r.s3(r.key(testBucket, access.ReadWrite), noRetry), r.s3(r.key(testBucket, access.Read), noRetry)
	require.NoError(t, putting(testBucket)(t.Context(), writer))
	list := func(permission access.Permission, until time.Time) string {
		return fmt.Sprintf(`{"revoked":[{"subject":%q,"bucket":%q,"permission":%d,"until":%q}]}`,
			access.SubjectTag("system:serviceaccount:d8-test:consumer"), access.BucketTag(testBucket), permission, until.Format(time.RFC3339))
	}
	status, answer := r.push(http.MethodPut, "/gateway/v1/revoked", cluster.AdminToken, list(access.Write, time.Now().Add(time.Hour)))
	require.Equal(t, http.StatusNoContent, status, answer)
	err := getting(testBucket)(t.Context(), writer)
	require.Contains(t, requireCode(t, err, "AccessDenied").ErrorMessage(), "taken away", "the key has more than is left, so it is refused as a whole")
	require.NoError(t, getting(testBucket)(t.Context(), reader), "a key for what is left goes on working")

	status, answer = r.push(http.MethodPut, "/gateway/v1/revoked", cluster.AdminToken, `{"revoked":[]}`)
	require.Equal(t, http.StatusNoContent, status, answer)
	require.NoError(t, getting(testBucket)(t.Context(), writer), "the right was given back")

	status, _ = r.push(http.MethodPut, "/gateway/v1/revoked", cluster.AdminToken, list(0, time.Now().Add(time.Hour)))
	require.Equal(t, http.StatusNoContent, status)
	requireCode(t, getting(testBucket)(t.Context(), reader), "AccessDenied")
	for name, wrong := range map[string]string{
		"not JSON":         "revoked",
		"an unknown field": `{"revoked":[],"except":[]}`,
		"no subject":       `{"revoked":[{"until":"2030-01-01T00:00:00Z"}]}`,
		"a short tag":      `{"revoked":[{"subject":"abcd","until":"2030-01-01T00:00:00Z"}]}`,
		"two documents":    `{"revoked":[]}{"revoked":[]}`,
	} {
		status, _ := r.push(http.MethodPut, "/gateway/v1/revoked", cluster.AdminToken, wrong)
		require.Equal(t, http.StatusBadRequest, status, name)
	}
	requireCode(t, getting(testBucket)(t.Context(), reader), "AccessDenied")
	status, _ = r.push(http.MethodPut, "/gateway/v1/revoked", cluster.MetricsToken, `{"revoked":[]}`)
	require.Equal(t, http.StatusUnauthorized, status)
}

func TestHeldWritesWaitAndSucceed(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	client := r.s3(r.key(testBucket, access.ReadWrite), noRetry)
	require.NoError(t, putting(testBucket)(t.Context(), client))
	hold := func(method, document string) (state struct {
		Writing     int     `json:"writing"`
		HeldSeconds float64 `json:"heldSeconds"`
	},
	) {
		status, answer := r.push(method, "/gateway/v1/hold", cluster.AdminToken, document)
		require.Equal(t, http.StatusOK, status, answer)
		require.NoError(t, json.Unmarshal([]byte(answer), &state))
		return state
	}
	state := hold(http.MethodPut, `{"seconds":30}`)
	require.Zero(t, state.Writing)
	require.Greater(t, state.HeldSeconds, 25.)
	written := make(chan error, 1)
	go func() { written <- putting(testBucket)(context.WithoutCancel(t.Context()), client) }()
	require.NoError(t, getting(testBucket)(t.Context(), client), "reads go on")
	select {
	case err := <-written:
		t.Fatalf("a held write has come through: %v", err)
	default:
	}
	require.Zero(t, hold(http.MethodGet, "").Writing)
	require.Zero(t, hold(http.MethodDelete, "").HeldSeconds)
	require.NoError(t, <-written, "no request fails because of the hold")

	hold(http.MethodPut, `{"seconds":0.05}`)
	require.NoError(t, putting(testBucket)(t.Context(), client), "a hold that nobody prolongs ends by itself")
	for _, wrong := range []string{`{"seconds":0}`, `{"seconds":-1}`, `{"seconds":61}`, `{}`, `x`} {
		status, _ := r.push(http.MethodPut, "/gateway/v1/hold", cluster.AdminToken, wrong)
		require.Equal(t, http.StatusBadRequest, status, wrong)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		status, _ := r.push(method, "/gateway/v1/hold", "wrong", `{"seconds":60}`)
		require.Equal(t, http.StatusUnauthorized, status)
	}
}
