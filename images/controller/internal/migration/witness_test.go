package migration_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
)

// witness is a client that writes, deletes and reads its own keys all the time, never tries twice, and remembers what was
// acknowledged.
type witness struct {
	client *s3.Client
	bucket string
	prefix string
	held   map[string]string // acknowledged content by key; "" is deleted
	errs   []error
	count  int
	most   time.Duration // the longest request
	r      *mrand.Rand
}

// witnesses at work until stop.
type witnesses struct {
	w    *town
	all  []*witness
	stop func()
}

// s3 is a client with the key of a consumer, which is sent to the plane that the Service selects at the time.
func (w *town) s3(bucket string) *s3.Client {
	w.t.Helper()
	signing, err := w.ring.Signing(time.Now())
	require.NoError(w.t, err)
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails
	key, err := access.Issue(signing, access.Grant{
		Bucket: bucket, Permission: access.ReadWrite, Subject: "system:serviceaccount:d8-test:consumer", Expires: time.Now().Add(30 * time.Minute),
	}, nonce)
	require.NoError(w.t, err)
	pool := x509.NewCertPool()
	require.True(w.t, pool.AppendCertsFromPEM([]byte(w.ca)))
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			selected, _ := w.selected.Load().(string)
			replicas := w.planes[selected].replicas
			return (&net.Dialer{}).DialContext(ctx, network, replicas[mrand.IntN(len(replicas))].s3)
		},
		TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: names.S3Host, MinVersion: tls.VersionTLS12},
	}
	w.t.Cleanup(transport.CloseIdleConnections)
	return s3.New(s3.Options{
		Region: names.Region, BaseEndpoint: aws.String(names.S3URL), UsePathStyle: true,
		Credentials:                credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, key.SessionToken),
		HTTPClient:                 &http.Client{Transport: transport},
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
		Retryer:                    aws.NopRetryer{},
	})
}

// witness sets clients to work on a bucket.
func (w *town) witness(bucket string, count int) *witnesses {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	all := &witnesses{w: w}
	var group sync.WaitGroup
	for i := range count {
		each := &witness{
			client: w.s3(bucket), bucket: bucket, prefix: fmt.Sprintf("w%d/", i), held: map[string]string{},
			r: mrand.New(mrand.NewPCG(uint64(i), 1)),
		}
		all.all = append(all.all, each)
		group.Go(func() { each.work(ctx) })
	}
	all.stop = sync.OnceFunc(func() { cancel(); group.Wait() })
	w.t.Cleanup(all.stop)
	return all
}

const (
	witnessKeys  = 50
	witnessPause = 5 * time.Millisecond
)

func (e *witness) work(ctx context.Context) {
	ticker := time.NewTicker(witnessPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		begun := time.Now()
		// A request that was begun is let end: whether it was acknowledged has to be known.
		if err := e.step(context.WithoutCancel(ctx)); err != nil {
			e.errs = append(e.errs, err)
		}
		e.most = max(e.most, time.Since(begun))
		e.count++
	}
}

func (e *witness) step(ctx context.Context) error {
	key := fmt.Sprintf("%s%d", e.prefix, e.r.IntN(witnessKeys))
	switch e.r.IntN(4) {
	case 0:
		if err := e.look(ctx, key); err != nil {
			return err
		}
	case 1:
		if _, err := e.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &e.bucket, Key: &key}); err != nil {
			return fmt.Errorf("delete %s: %w", key, err)
		}
		e.held[key] = ""
	default:
		content := rand.Text()
		if _, err := e.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &e.bucket, Key: &key, Body: bytes.NewReader([]byte(content))}); err != nil {
			return fmt.Errorf("put %s: %w", key, err)
		}
		e.held[key] = content
	}
	return nil
}

// look reads a key back and compares it with what was acknowledged last.
func (e *witness) look(ctx context.Context, key string) error {
	wanted, known := e.held[key]
	if !known {
		return nil
	}
	out, err := e.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &e.bucket, Key: &key})
	if missing := (*types.NoSuchKey)(nil); errors.As(err, &missing) {
		if wanted != "" {
			return fmt.Errorf("%s is lost", key)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	defer out.Body.Close()
	content, err := io.ReadAll(out.Body)
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", key, err)
	case wanted == "":
		return fmt.Errorf("%s is back although it was deleted", key)
	case string(content) != wanted:
		return fmt.Errorf("%s is not what was acknowledged", key)
	}
	return nil
}

// testify ends the work and reads everything back; no request may have failed, and none waited for long.
func (all *witnesses) testify(t *testing.T, most time.Duration) {
	t.Helper()
	all.stop()
	requests, longest := 0, time.Duration(0)
	for _, each := range all.all {
		require.Empty(t, each.errs, "requests that failed")
		for key := range each.held {
			require.NoError(t, each.look(t.Context(), key))
		}
		requests += each.count
		longest = max(longest, each.most)
	}
	t.Logf("%d requests, none failed, the longest took %v", requests, longest)
	require.Less(t, longest, most, "no request waits for longer")
}

// s3Of is a client of a Garage without a gateway.
func s3Of(url, keyID, secret string) *s3.Client {
	return backend.S3(url, keyID, secret, http.DefaultClient)
}
