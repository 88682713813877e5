package s3

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/deckhouse/system-s3/images/gateway/internal/metrics"
	"github.com/deckhouse/system-s3/images/gateway/internal/revocation"
	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/sigv4"
)

const benchBucket = "d8-bench-data-abcdefghijkl"

// fromSDK is a GET as the server receives it from an SDK.
func fromSDK(b *testing.B, key access.Key, now time.Time) *http.Request {
	b.Helper()
	const emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, names.S3URL+"/"+benchBucket+"/dir/object", http.NoBody)
	require.NoError(b, err)
	for name, value := range map[string]string{
		"X-Amz-Content-Sha256": emptySum, "User-Agent": "aws-sdk-go-v2/1.48.0 ua/2.1 os/linux lang/go#1.26.8 md/GOOS#linux api/s3#1.114.10",
		"Accept-Encoding": "identity", "Amz-Sdk-Invocation-Id": "7a2b0c3e-7d6f-4c5b-9a77-3c1e62f0a1b2",
		"Amz-Sdk-Request": "attempt=1; max=3", "X-Amz-Checksum-Mode": "ENABLED",
	} {
		r.Header.Set(name, value)
	}
	credentials := aws.Credentials{AccessKeyID: key.AccessKeyID, SecretAccessKey: key.SecretAccessKey, SessionToken: key.SessionToken}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	require.NoError(b, signer.SignHTTP(b.Context(), credentials, r, emptySum, "s3", names.Region, now))
	r.RequestURI = r.URL.RequestURI()
	return r
}

// BenchmarkAdmission is all that access costs a request: its signature, the key and what it claims, the operation, the
// signature for Garage, and that it is counted. A new key is one whose first request it is.
func BenchmarkAdmission(b *testing.B) {
	now := time.Now()
	ring := access.Ring{}.Rotate(now.Add(-time.Hour), make([]byte, 32))
	handler := New(Config{
		Domains: []string{names.S3Host}, Ring: func() access.Ring { return ring }, InternalID: access.InternalKeyID, Revoked: &revocation.List{},
		Signer: &sigv4.Signer{Endpoint: &url.URL{Scheme: "http", Host: "127.0.0.1:3900"}, Region: names.GarageRegion, AccessKeyID: access.InternalKeyID, Secret: "secret"},
		Now:    func() time.Time { return now }, Log: zap.NewNop(), Meter: metrics.NewMeter(),
	})
	admit := func(b *testing.B, h *Handler, r *http.Request) {
		b.Helper()
		verified, err := h.verifier.Verify(r, now)
		require.NoError(b, err)
		caller, err := h.identify(verified.Identity)
		require.NoError(b, err)
		op, err := caller.decide(verified.Request())
		require.NoError(b, err)
		_, err = h.Signer.Forward(context.Background(), verified, op, now)
		require.NoError(b, err)
		h.Meter.Count(metrics.Exchange{Bucket: verified.Bucket, Operation: op.Name, Code: metrics.OK, Started: now})
	}
	key := func(b *testing.B, nonce byte) access.Key {
		b.Helper()
		issued, err := access.Issue(ring.Keys[0], access.Grant{
			Bucket: benchBucket, Permission: access.Read, Subject: "system:serviceaccount:d8-bench:consumer", Expires: now.Add(time.Hour),
		}, [8]byte{nonce})
		require.NoError(b, err)
		return issued
	}
	b.Run("a key in use", func(b *testing.B) {
		r := fromSDK(b, key(b, 1), now)
		b.ReportAllocs()
		for b.Loop() {
			admit(b, handler, r)
		}
	})
	b.Run("a new key", func(b *testing.B) {
		r := fromSDK(b, key(b, 2), now)
		b.ReportAllocs()
		for b.Loop() {
			admit(b, New(handler.Config), r)
		}
	})
}
