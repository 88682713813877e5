package serving

import (
	"crypto/tls"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

// scrape asks the metrics port.
func (r *rig) scrape(token string) (int, string) {
	r.t.Helper()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: r.ca.pool(), ServerName: names.S3Host, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "https://"+r.server.MetricsAddress()+"/metrics", http.NoBody)
	require.NoError(r.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	require.NoError(r.t, err)
	answer, err := io.ReadAll(response.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, response.Body.Close())
	return response.StatusCode, string(answer)
}

func TestWhatConsumersDoIsCounted(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	cluster.CreateBucket(t, otherBucket)
	r := newRig(t, cluster, nil)
	both, reader := r.s3(r.key(testBucket, access.ReadWrite), noRetry), r.s3(r.key(testBucket, access.Read), noRetry)
	expired := r.s3(r.keyFor(testBucket, access.Read, -time.Minute), noRetry)
	require.NoError(t, putting(testBucket)(t.Context(), both))
	require.NoError(t, getting(testBucket)(t.Context(), reader))
	require.NoError(t, getting(testBucket)(t.Context(), reader))
	require.Error(t, putting(testBucket)(t.Context(), reader))
	require.Error(t, getting(otherBucket)(t.Context(), both))
	require.Error(t, getting("d8-never-was-abcdefghijkl")(t.Context(), both))
	require.Error(t, getting(testBucket)(t.Context(), expired))

	status, _ := r.scrape(cluster.AdminToken)
	require.Equal(t, http.StatusUnauthorized, status, "the admin token is another one")
	status, told := r.scrape(cluster.MetricsToken)
	require.Equal(t, http.StatusOK, status)
	for _, line := range []string{
		`system_s3_requests_total{bucket="` + testBucket + `",code="OK",operation="write"} 1`,
		`system_s3_requests_total{bucket="` + testBucket + `",code="OK",operation="read"} 2`,
		`system_s3_sent_bytes_total{bucket="` + testBucket + `",operation="read"} 8`,
		`system_s3_requests_total{bucket="` + testBucket + `",code="AccessDenied",operation="write"} 1`,
		`system_s3_requests_total{bucket="",code="AccessDenied",operation="other"} 2`,
		`system_s3_keys_refused_total{reason="ExpiredToken"} 1`,
		`system_s3_keys_refused_total{reason="NotPermitted"} 1`,
		`system_s3_keys_refused_total{reason="OtherBucket"} 2`,
		`system_s3_request_duration_seconds_count{operation="read"} 2`,
		`system_s3_writes_refused 0`,
		`system_s3_certificate_expiry_timestamp_seconds{component="gateway"}`,
	} {
		require.Contains(t, told, "\n"+line)
	}
	require.NotContains(t, told, "never-was", "what somebody asks for without a key for it is no label")
	require.NotContains(t, told, `bucket="`+otherBucket)
}
