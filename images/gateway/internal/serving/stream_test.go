package serving

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

// unsignedPayload lets the SDK send a body that it cannot read twice.
func unsignedPayload(stack *middleware.Stack) error {
	return v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware(stack)
}

// zeros is a body of a size that nobody holds in memory.
func zeros(size int64) io.Reader { return io.LimitReader(zeroReader{}, size) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// heapPeak samples the heap while work runs, with a collector that lets little garbage lie. The client is in this
// process, too, so what is found bounds both.
func heapPeak(work func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	runtime.GC()
	done := make(chan struct{})
	var peak uint64
	var sampled sync.WaitGroup
	sampled.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			peak = max(peak, stats.HeapInuse)
			select {
			case <-done:
				return
			case <-ticker.C:
			}
		}
	})
	work()
	close(done)
	sampled.Wait()
	return peak
}

func TestALargeObjectDoesNotGrowMemory(t *testing.T) {
	const size, limit = 512 << 20, 48 << 20
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	client := r.s3(r.key(testBucket, access.ReadWrite), noRetry)
	peak := heapPeak(func() {
		_, err := client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: aws.String(testBucket), Key: aws.String("large"), Body: zeros(size), ContentLength: aws.Int64(size),
		}, s3.WithAPIOptions(unsignedPayload))
		require.NoError(t, err)
		out, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(testBucket), Key: aws.String("large")})
		require.NoError(t, err)
		digest := sha256.New()
		n, err := io.Copy(digest, out.Body)
		require.NoError(t, err)
		require.NoError(t, out.Body.Close())
		require.EqualValues(t, size, n)
	})
	require.Less(t, peak, uint64(limit), "an object of 512 MiB went up and down")
}

func TestAStalledUploadIsGivenUp(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, func(c *Config) { c.StallTimeout = 300 * time.Millisecond })
	presigner := s3.NewPresignClient(r.s3(r.key(testBucket, access.ReadWrite), pathStyle))
	upload, err := presigner.PresignPutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(testBucket), Key: aws.String("stalled")})
	require.NoError(t, err)
	conn, err := tls.Dial("tcp", r.server.S3Address(), &tls.Config{RootCAs: r.ca.pool(), ServerName: names.S3Host, MinVersion: tls.VersionTLS12})
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	target := strings.TrimPrefix(upload.URL, names.S3URL)
	_, err = fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000000\r\n\r\nonly this", target, names.S3Host)
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(waitLimit)))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil { // the connection may also just end
		require.Equal(t, http.StatusBadRequest, response.StatusCode)
		require.NoError(t, response.Body.Close())
	}
	eventually(t, "nothing is left running", func() bool { return r.server.gate.Running() == 0 })
}

func TestAClientThatLeavesLeavesNothingBehind(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	client := r.s3(r.key(testBucket, access.ReadWrite), noRetry)
	_, err := client.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String(testBucket), Key: aws.String("large"), Body: zeros(64 << 20), ContentLength: aws.Int64(64 << 20),
	}, s3.WithAPIOptions(unsignedPayload))
	require.NoError(t, err)
	eventually(t, "quiet", func() bool { return r.server.gate.Running() == 0 })
	before := runtime.NumGoroutine()
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		out, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(testBucket), Key: aws.String("large")})
		require.NoError(t, err)
		_, err = io.CopyN(io.Discard, out.Body, 1<<20)
		require.NoError(t, err)
		cancel()
		_ = out.Body.Close()

		ctx, cancel = context.WithCancel(t.Context())
		body := &cancelling{reader: zeros(64 << 20), after: 1 << 20, cancel: cancel}
		_, err = client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: aws.String(testBucket), Key: aws.String("left"), Body: body, ContentLength: aws.Int64(64 << 20),
		}, s3.WithAPIOptions(unsignedPayload))
		require.Error(t, err)
		cancel()
	}
	eventually(t, "requests end with their clients", func() bool { return r.server.gate.Running() == 0 })
	eventually(t, "no goroutine stays", func() bool { return runtime.NumGoroutine() <= before+10 })
	_, err = client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String(testBucket), Key: aws.String("left")})
	requireCode(t, err, "NotFound")
}

// cancelling cancels after some bytes.
type cancelling struct {
	reader io.Reader
	after  int
	cancel context.CancelFunc
}

func (c *cancelling) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	if c.after -= n; c.after < 0 {
		c.cancel()
	}
	return n, err
}

func TestARefusedUploadGetsItsAnswer(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	presigner := s3.NewPresignClient(r.s3(r.key(otherBucket, access.ReadWrite), pathStyle))
	upload, err := presigner.PresignPutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(testBucket), Key: aws.String("refused")})
	require.NoError(t, err)
	// Many clients send everything before they read the answer.
	conn, err := tls.Dial("tcp", r.server.S3Address(), &tls.Config{RootCAs: r.ca.pool(), ServerName: names.S3Host, MinVersion: tls.VersionTLS12})
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	const size = 8 << 20
	_, err = fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", strings.TrimPrefix(upload.URL, names.S3URL), names.S3Host, size)
	require.NoError(t, err)
	_, err = io.Copy(conn, zeros(size))
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, response.StatusCode)
	require.NoError(t, response.Body.Close())
}

// TestAHugeUploadByHand uploads as many GiB as SYSTEM_S3_HUGE says; without it, one block, so that the path is walked.
func TestAHugeUploadByHand(t *testing.T) {
	size := int64(1 << 20)
	if text := os.Getenv("SYSTEM_S3_HUGE"); text != "" {
		var gib int64
		_, err := fmt.Sscan(text, &gib)
		require.NoError(t, err)
		size = gib << 30
	}
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	client := r.s3(r.key(testBucket, access.ReadWrite), noRetry)
	peak := heapPeak(func() {
		_, err := client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: aws.String(testBucket), Key: aws.String("huge"), Body: zeros(size), ContentLength: &size,
		}, s3.WithAPIOptions(unsignedPayload))
		require.NoError(t, err)
	})
	t.Logf("%d bytes, heap peak %d MiB", size, peak>>20)
	require.Less(t, peak, uint64(48<<20))
}
