package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/deckhouse/system-s3/images/gateway/internal/volume"
	"github.com/deckhouse/system-s3/lib/metrics"
)

func TestRequestsAreCountedByBucketOperationAndCode(t *testing.T) {
	m := NewMeter()
	for _, e := range []Exchange{
		{Bucket: "a", Operation: "GetObject", Code: OK, Sent: 10},
		{Bucket: "a", Operation: "HeadObject", Code: OK},
		{Bucket: "a", Operation: "PutObject", Code: "QuotaExceeded", Received: 7},
		{Bucket: "a", Operation: "UploadPart", Code: OK, Received: 5},
		{Bucket: "b", Operation: "AbortMultipartUpload", Code: OK},
		{Bucket: "b", Operation: "ListObjectsV2", Code: "made up by somebody", Sent: 3},
		{Code: "ExpiredToken", Refusal: "ExpiredToken"},
		{Operation: "AssumeRoleWithWebIdentity", Code: "Forbidden"},
	} {
		e.Started = time.Now()
		m.Count(e)
	}
	require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(`
# HELP system_s3_requests_total Requests that were answered.
# TYPE system_s3_requests_total counter
system_s3_requests_total{bucket="",code="ExpiredToken",operation="other"} 1
system_s3_requests_total{bucket="",code="Other",operation="sts"} 1
system_s3_requests_total{bucket="a",code="OK",operation="read"} 2
system_s3_requests_total{bucket="a",code="OK",operation="write"} 1
system_s3_requests_total{bucket="a",code="QuotaExceeded",operation="write"} 1
system_s3_requests_total{bucket="b",code="OK",operation="delete"} 1
system_s3_requests_total{bucket="b",code="Other",operation="list"} 1
# HELP system_s3_received_bytes_total Bytes of bodies that clients have sent.
# TYPE system_s3_received_bytes_total counter
system_s3_received_bytes_total{bucket="a",operation="write"} 12
# HELP system_s3_sent_bytes_total Bytes of bodies that clients were sent.
# TYPE system_s3_sent_bytes_total counter
system_s3_sent_bytes_total{bucket="a",operation="read"} 10
system_s3_sent_bytes_total{bucket="b",operation="list"} 3
# HELP system_s3_keys_refused_total Requests that were refused because of their key.
# TYPE system_s3_keys_refused_total counter
system_s3_keys_refused_total{reason="ExpiredToken"} 1
`), metrics.Requests.Name, metrics.ReceivedBytes.Name, metrics.SentBytes.Name, metrics.KeysRefused.Name))
}

func TestBucketsThatNobodyUsesAreForgotten(t *testing.T) {
	m, now := NewMeter(), time.Now()
	m.now = func() time.Time { return now }
	for i := range 100 {
		m.Count(Exchange{Bucket: fmt.Sprint("bucket-", i), Operation: "GetObject", Code: OK, Started: now})
	}
	require.Equal(t, 100, testutil.CollectAndCount(m, metrics.Requests.Name))
	now = now.Add(forgetAfter / 2)
	m.Count(Exchange{Bucket: "bucket-7", Operation: "GetObject", Code: OK, Started: now})
	now = now.Add(forgetAfter/2 + time.Minute)
	require.Equal(t, 1, testutil.CollectAndCount(m, metrics.Requests.Name), "only the one in use is left")
	require.Len(t, m.buckets, 1, "no memory is kept for the others")
}

func TestCountingTakesNoAllocation(t *testing.T) {
	m, e := NewMeter(), Exchange{Bucket: "a", Operation: "GetObject", Code: OK, Sent: 1 << 20, Started: time.Now()}
	m.Count(e)
	require.Zero(t, testing.AllocsPerRun(1000, func() { m.Count(e) }))
}

func BenchmarkCount(b *testing.B) {
	m, e := NewMeter(), Exchange{Bucket: "a", Operation: "GetObject", Code: OK, Sent: 1 << 20, Started: time.Now()}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			m.Count(e)
		}
	})
}

func state() State {
	made := time.Unix(1_700_000_000, 0)
	return State{
		Ring: func() time.Time { return made }, Certificate: func() time.Time { return time.Time{} },
		Volume: func() (volume.Status, error) {
			return volume.Status{Space: volume.Space{Total: 100, Free: 5}, Reserve: 3, Refusing: true}, nil
		},
		Running: func() int { return 4 }, Writes: func() (int, time.Duration) { return 1, time.Second }, Revoked: func() int { return 2 },
	}
}

func TestStateIsTold(t *testing.T) {
	require.NoError(t, testutil.CollectAndCompare(state(), strings.NewReader(`
# HELP system_s3_key_ring_newest_timestamp_seconds When the newest signing key that the program knows was made.
# TYPE system_s3_key_ring_newest_timestamp_seconds gauge
system_s3_key_ring_newest_timestamp_seconds{component="gateway"} 1.7e+09
# HELP system_s3_writes_held 1 while new writes wait for the switch to another StorageClass.
# TYPE system_s3_writes_held gauge
system_s3_writes_held 1
# HELP system_s3_volume_free_bytes What is free of it.
# TYPE system_s3_volume_free_bytes gauge
system_s3_volume_free_bytes 5
# HELP system_s3_writes_refused 1 while writes are refused with `+"`InsufficientStorage`"+` because this or another replica's volume is full.
# TYPE system_s3_writes_refused gauge
system_s3_writes_refused 1
`), metrics.KeyRingCreated.Name, metrics.CertificateExpiry.Name, metrics.WritesHeld.Name, metrics.VolumeFree.Name, metrics.WritesRefused.Name))
	unmeasured := state()
	unmeasured.Volume = func() (volume.Status, error) { return volume.Status{}, http.ErrServerClosed }
	require.Zero(t, testutil.CollectAndCount(unmeasured, metrics.VolumeSize.Name), "what is not known is not told as nothing")
}

func TestMetricsAreForTheBearerOfTheToken(t *testing.T) {
	handler := NewHandler("the-token", NewMeter(), state(), zap.NewNop())
	for header, status := range map[string]int{
		"": http.StatusUnauthorized, "Bearer other": http.StatusUnauthorized, "the-token": http.StatusUnauthorized, "Bearer the-token": http.StatusOK,
	} {
		request := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		request.Header.Set("Authorization", header)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		require.Equal(t, status, answer.Code, header)
		require.Equal(t, status == http.StatusOK, strings.Contains(answer.Body.String(), metrics.BuildInfo.Name))
	}
}

// What is declared for the gateway is told, and nothing else of that prefix.
func TestTheGatewayTellsWhatIsDeclared(t *testing.T) {
	m := NewMeter()
	m.Count(Exchange{Bucket: "a", Operation: "CopyObject", Code: OK, Received: 1, Sent: 1, Refusal: "Revoked", Started: time.Now()})
	full := state()
	full.Certificate = time.Now
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m, full)
	families, err := registry.Gather()
	require.NoError(t, err)
	var told, wanted []string
	for _, family := range families {
		told = append(told, family.GetName())
	}
	for _, each := range metrics.All() {
		for _, source := range each.Sources {
			if source == metrics.Gateway {
				wanted = append(wanted, each.Name)
			}
		}
	}
	require.ElementsMatch(t, wanted, told)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}
