package serving

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/deckhouse/system-s3/images/gateway/internal/volume"
	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

func zapString(key, value string) zapcore.Field { return zap.String(key, value) }

func TestReadyWhenThisNodeServes(t *testing.T) {
	cluster := garagetest.StartWith(t, 1, garagetest.Options{Bare: true})
	r := newRig(t, cluster, nil)
	require.Equal(t, http.StatusOK, r.admin("/livez", "").StatusCode)
	eventually(t, "ready before there is a layout: the controller must get in to make one", func() bool { return r.readyStatus() == http.StatusOK })

	cluster.ApplyLayout(t)
	eventually(t, "not ready with a layout and without the internal key: consumers would be refused", func() bool {
		return r.readyStatus() == http.StatusServiceUnavailable
	})
	require.NoError(t, cluster.Client().ImportKey(t.Context(), garage.Key{AccessKeyID: cluster.KeyID, SecretAccessKey: cluster.KeySecret, Name: "system-s3"}))
	eventually(t, "ready once the node knows the internal key", func() bool { return r.readyStatus() == http.StatusOK })

	r.stopGarage()
	eventually(t, "not ready without Garage", func() bool { return r.readyStatus() == http.StatusServiceUnavailable })
	require.Equal(t, http.StatusOK, r.admin("/livez", "").StatusCode, "restarting the gateway would not help")
	cluster.Nodes[0].Start(t)
	eventually(t, "ready again", func() bool { return r.readyStatus() == http.StatusOK })
}

func TestTheAdminPortAsksForTheToken(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	r := newRig(t, cluster, nil)
	for _, path := range []string{"/v2/GetClusterHealth", "/health", "/gateway/v1/volume"} {
		for _, token := range []string{"", "wrong", cluster.AdminToken + "x", cluster.MetricsToken} {
			require.Equal(t, http.StatusUnauthorized, r.admin(path, token).StatusCode, path)
		}
		require.Equal(t, http.StatusOK, r.admin(path, cluster.AdminToken).StatusCode, path)
	}
	require.Equal(t, http.StatusNotFound, r.admin("/metrics", cluster.AdminToken).StatusCode)

	var space volume.Space
	require.NoError(t, json.NewDecoder(r.admin("/gateway/v1/volume", cluster.AdminToken).Body).Decode(&space))
	require.Positive(t, space.Total)
	require.Positive(t, space.Free)
	require.NoError(t, os.WriteFile(filepath.Join(r.config.VolumeDir, names.ContentFile), []byte("c0ffee\n"), 0o600))
	var told struct {
		Content string `json:"content"`
	}
	require.NoError(t, json.NewDecoder(r.admin("/gateway/v1/volume", cluster.AdminToken).Body).Decode(&told))
	require.Equal(t, "c0ffee", told.Content)

	through := garage.New("https://"+r.server.AdminAddress(), cluster.AdminToken, &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: r.ca.pool(), ServerName: names.S3Host, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}})
	bucket, err := through.CreateBucket(t.Context())
	require.NoError(t, err)
	_, err = through.GetBucketByAlias(t.Context(), "absent")
	require.True(t, garage.IsAbsent(err), "Garage's own errors come through: %v", err)
	require.NoError(t, through.DeleteBucket(t.Context(), bucket.ID))
	r.stopGarage()
	_, err = through.GetClusterHealth(t.Context())
	require.Error(t, err)
	require.False(t, garage.IsAbsent(err), "away is not absent")
}

func TestAGarageThatIsAwayIsARetryableError(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	client := r.s3(r.key(testBucket, access.ReadWrite), noRetry)
	require.NoError(t, putting(testBucket)(t.Context(), client))
	r.stopGarage()
	for _, try := range []attempt{putting(testBucket), getting(testBucket)} {
		began := time.Now()
		requireCode(t, try(t.Context(), client), "SlowDown")
		require.Less(t, time.Since(began), 5*time.Second)
	}
	cluster.Nodes[0].Start(t)
	eventually(t, "back", func() bool { return getting(testBucket)(t.Context(), client) == nil })
}

func TestAGarageThatHangsIsARetryableError(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, func(c *Config) { c.AnswerTimeout, c.StallTimeout = time.Second, 300*time.Millisecond })
	client := r.s3(r.key(testBucket, access.ReadWrite), noRetry)
	require.NoError(t, putting(testBucket)(t.Context(), client))
	cluster.Nodes[0].Pause(t)
	large := func(ctx context.Context, client *s3.Client) error {
		_, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(testBucket), Key: aws.String("large"), Body: bytes.NewReader(pattern(32 << 20))})
		return err
	}
	for _, try := range []attempt{putting(testBucket), getting(testBucket), large} {
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		requireCode(t, try(ctx, client), "SlowDown")
		cancel()
	}
	eventually(t, "not ready", func() bool { return r.readyStatus() == http.StatusServiceUnavailable })
	eventually(t, "nothing is left running", func() bool { return r.server.gate.Running() == 0 })
	cluster.Nodes[0].Resume(t)
	eventually(t, "back", func() bool { return getting(testBucket)(t.Context(), client) == nil })
}

func TestAGarageThatIsRestartedIsWaitedFor(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, func(c *Config) { c.GaragePatience = time.Minute })
	client := r.s3(r.key(testBucket, access.ReadWrite), noRetry)
	require.NoError(t, putting(testBucket)(t.Context(), client))
	cluster.Nodes[0].Kill()
	results := make(chan error, 2)
	for _, try := range []attempt{putting(testBucket), getting(testBucket)} {
		go func() { results <- try(t.Context(), client) }()
	}
	eventually(t, "both have come", func() bool { return r.server.gate.Running() == 2 })
	cluster.Nodes[0].Start(t)
	require.NoError(t, <-results)
	require.NoError(t, <-results)
}

func TestSDKsOutlastAGarageThatIsAway(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	key := r.key(testBucket, access.ReadWrite)
	require.NoError(t, putting(testBucket)(t.Context(), r.s3(key, noRetry)))
	r.stopGarage()
	results := make(chan error, 2)
	for _, try := range []attempt{putting(testBucket), getting(testBucket)} {
		go func() { results <- try(t.Context(), r.s3(key, patient)) }()
	}
	eventually(t, "both were refused", func() bool { return r.logs.FilterMessageSnippet("request failed").Len() >= 2 })
	cluster.Nodes[0].Start(t)
	require.NoError(t, <-results)
	require.NoError(t, <-results)
}

func patient(o *s3.Options) { o.RetryMaxAttempts = 10 }

func TestALaggingKeyTableIsARetryableError(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	id := cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	client := r.s3(r.key(testBucket, access.ReadWrite), noRetry)
	_, err := cluster.Client().DenyBucketKey(t.Context(), id, cluster.KeyID, garage.Permissions{Read: true, Write: true})
	require.NoError(t, err)
	requireCode(t, getting(testBucket)(t.Context(), client), "SlowDown")
	_, err = client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String(testBucket), Key: aws.String("object")})
	// Garage refuses a PUT before it has read the body and hangs up: its answer may get lost, what the client may do is
	// the same.
	for _, err := range []error{err, putting(testBucket)(t.Context(), client)} {
		var failure interface{ HTTPStatusCode() int }
		require.ErrorAs(t, err, &failure)
		require.Equal(t, http.StatusServiceUnavailable, failure.HTTPStatusCode())
	}
}

func TestTheKeyRingAndTheCertificateRotateWhileServing(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	old := r.s3(r.key(testBucket, access.ReadWrite), noRetry)
	require.NoError(t, putting(testBucket)(t.Context(), old))

	r.ring = r.ring.Rotate(time.Now().Add(-30*time.Minute).Add(25*time.Hour), randomBytes(t))
	require.Len(t, r.ring.Keys, 2)
	newest := r.ring.Keys[1]
	issued, err := access.Issue(newest, access.Grant{Bucket: testBucket, Permission: access.Read, Subject: "s", Expires: time.Now().Add(time.Hour)}, [8]byte{})
	require.NoError(t, err)
	fresh := r.s3(issued, noRetry)
	requireCode(t, getting(testBucket)(t.Context(), fresh), "InvalidAccessKeyId")
	r.writeFile(r.config.RingFile, []byte("{"))
	eventually(t, "a damaged ring is told", func() bool { return r.logs.FilterMessageSnippet("key ring cannot be read").Len() > 0 })
	require.NoError(t, getting(testBucket)(t.Context(), old), "keys in flight go on working")
	r.writeRing()
	eventually(t, "the new ring is read", func() bool { return getting(testBucket)(t.Context(), fresh) == nil })
	require.NoError(t, getting(testBucket)(t.Context(), old), "keys in flight go on working")

	open := r.dial()
	askOn(t, open)
	cert := r.ca.write(t, r.config.TLSDir)
	eventually(t, "the new certificate is served", func() bool {
		conn, err := tls.Dial("tcp", r.server.S3Address(), &tls.Config{RootCAs: r.ca.pool(), ServerName: names.S3Host, MinVersion: tls.VersionTLS12})
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close() }()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Cmp(cert.SerialNumber) == 0
	})
	require.NoError(t, getting(testBucket)(t.Context(), old), "open connections go on")
	askOn(t, open)
}

// askOn asks something on a connection that stays open.
func askOn(t *testing.T, conn *tls.Conn) {
	t.Helper()
	_, err := fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n", testBucket, names.S3Host)
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(waitLimit)))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, response.StatusCode, "nobody has signed")
	require.False(t, response.Close)
}

// slowReader gives its bytes only when it is told.
type slowReader struct {
	data io.Reader
	more chan struct{}
	seen chan struct{}
}

func (r *slowReader) Read(p []byte) (int, error) {
	select {
	case r.seen <- struct{}{}:
	default:
	}
	<-r.more
	return r.data.Read(p)
}

func TestARunningUploadIsFinishedBeforeTheGatewayStops(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	client := r.s3(r.key(testBucket, access.ReadWrite), noRetry, pathStyle)
	body := &slowReader{data: bytes.NewReader(pattern(1 << 20)), more: make(chan struct{}), seen: make(chan struct{}, 1)}
	uploaded := make(chan error, 1)
	go func() {
		_, err := client.PutObject(context.WithoutCancel(t.Context()), &s3.PutObjectInput{
			Bucket: aws.String(testBucket), Key: aws.String("slow"), Body: body, ContentLength: aws.Int64(1 << 20),
		}, s3.WithAPIOptions(unsignedPayload))
		uploaded <- err
	}()
	<-body.seen
	body.more <- struct{}{}
	eventually(t, "the upload has reached the gateway", func() bool { return r.server.gate.Running() == 1 })

	drained := make(chan int, 1)
	go func() { drained <- r.admin("/gateway/v1/drained", "").StatusCode }()
	r.stop()
	eventually(t, "not ready while draining", func() bool { return r.readyStatus() == http.StatusServiceUnavailable })
	eventually(t, "no new connection", func() bool {
		conn, err := net.DialTimeout("tcp", r.server.S3Address(), time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	select {
	case status := <-drained:
		t.Fatalf("drained with an upload running: %d", status)
	case err := <-uploaded:
		t.Fatalf("the upload ended early: %v", err)
	default:
	}
	close(body.more)
	require.NoError(t, <-uploaded)
	require.Equal(t, http.StatusOK, <-drained)
	select {
	case err := <-r.stopped:
		require.NoError(t, err)
		r.stopped <- err
	case <-time.After(waitLimit):
		t.Fatal("the gateway does not stop")
	}
}

func TestGarageStoppingAloneIsNotHeldUp(t *testing.T) {
	r := newRig(t, garagetest.Start(t, 1), nil)
	began := time.Now()
	require.Equal(t, http.StatusOK, r.admin("/gateway/v1/drained", "").StatusCode)
	require.Less(t, time.Since(began), 15*time.Second)
}

func TestFormPostsToTheServiceGoToSTS(t *testing.T) {
	ca := newAuthority(t)
	dir := t.TempDir()
	ca.write(t, dir)
	pair, err := tls.LoadX509KeyPair(dir+"/tls.crt", dir+"/tls.key")
	require.NoError(t, err)
	sts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, r.Form.Get("Action")+" by "+r.Host)
	}))
	sts.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	sts.StartTLS()
	t.Cleanup(sts.Close)

	r := newRig(t, garagetest.StartWith(t, 1, garagetest.Options{Bare: true}), func(c *Config) {
		ca.write(t, c.TLSDir)
		c.STS = sts.URL
	})
	r.ca = ca
	post := func(form string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, names.S3URL+"/", strings.NewReader(form))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		response, err := r.http().Do(request)
		require.NoError(t, err)
		data, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, string(data)
	}
	form := url.Values{"Action": {"AssumeRoleWithWebIdentity"}, "WebIdentityToken": {"secret-token"}}
	status, answer := post(form.Encode())
	require.Equal(t, http.StatusOK, status, answer)
	require.Contains(t, answer, "AssumeRoleWithWebIdentity by 127.0.0.1")
	status, answer = post("Action=AssumeRoleWithWebIdentity&WebIdentityToken=" + strings.Repeat("x", 100<<10))
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.Contains(t, answer, "ValidationError")
	sts.Close()
	status, answer = post(form.Encode())
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, answer, "<Code>ServiceUnavailable</Code>")
	for _, entry := range r.logs.All() {
		for _, value := range entry.ContextMap() {
			require.NotContains(t, fmt.Sprint(value), "secret-token")
		}
	}
}
