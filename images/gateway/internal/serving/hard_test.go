package serving

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

func (r *rig) dial() *tls.Conn {
	r.t.Helper()
	conn, err := tls.Dial("tcp", r.server.S3Address(), &tls.Config{RootCAs: r.ca.pool(), ServerName: names.S3Host, MinVersion: tls.VersionTLS12})
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// presignedPut is the target of an upload that needs no headers.
func (r *rig) presignedPut(key string) string {
	r.t.Helper()
	presigner := s3.NewPresignClient(r.s3(r.key(testBucket, access.ReadWrite), pathStyle))
	upload, err := presigner.PresignPutObject(r.t.Context(), &s3.PutObjectInput{Bucket: aws.String(testBucket), Key: &key})
	require.NoError(r.t, err)
	return strings.TrimPrefix(upload.URL, names.S3URL)
}

// trickle sends a byte every period until it fails or enough is enough.
func trickle(conn io.Writer, period, enough time.Duration) error {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for began := time.Now(); time.Since(began) < enough; <-ticker.C {
		if _, err := conn.Write([]byte{'x'}); err != nil {
			return err
		}
	}
	return nil
}

func TestATrickleIsNoUpload(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, func(c *Config) { c.StallTimeout = time.Second })
	conn := r.dial()
	_, err := fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000000\r\n\r\n", r.presignedPut("trickle"), names.S3Host)
	require.NoError(t, err)
	require.Error(t, trickle(conn, 20*time.Millisecond, waitLimit), "a byte now and then holds no connection")
	eventually(t, "nothing is left running", func() bool { return r.server.gate.Running() == 0 })
}

func TestASlowButSteadyUploadSucceeds(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, func(c *Config) { c.StallTimeout = 400 * time.Millisecond })
	const pieces, size = 20, 2000
	body := &paced{left: pieces, piece: pattern(size), ticker: time.NewTicker(50 * time.Millisecond)}
	defer body.ticker.Stop()
	_, err := r.s3(r.key(testBucket, access.ReadWrite), noRetry).PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String(testBucket), Key: aws.String("slow"), Body: body, ContentLength: aws.Int64(pieces * size),
	}, s3.WithAPIOptions(unsignedPayload))
	require.NoError(t, err, "it took longer than the stall timeout, and moved all the time")
}

// paced gives a piece with every tick.
type paced struct {
	left   int
	piece  []byte
	ticker *time.Ticker
}

func (p *paced) Read(buffer []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	<-p.ticker.C
	p.left--
	return copy(buffer, p.piece), nil
}

func TestSlowHeadersAreNotWaitedFor(t *testing.T) {
	r := newRig(t, garagetest.StartWith(t, 1, garagetest.Options{Bare: true}), func(c *Config) { c.HeaderTimeout = 300 * time.Millisecond })
	silent, slow := r.dial(), r.dial()
	_, err := io.WriteString(slow, "GET / HTTP/1.1\r\nHost: ")
	require.NoError(t, err)
	require.Error(t, trickle(slow, 20*time.Millisecond, waitLimit))
	require.NoError(t, silent.SetReadDeadline(time.Now().Add(waitLimit)))
	_, err = silent.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, io.ErrNoProgress)
}

func TestAThousandIdleConnectionsHinderNobody(t *testing.T) {
	const connections = 1000
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	client := r.s3(r.key(testBucket, access.ReadWrite), noRetry)
	require.NoError(t, putting(testBucket)(t.Context(), client))
	before := runtime.NumGoroutine()
	idle := make([]*tls.Conn, connections)
	for i := range idle {
		idle[i] = r.dial()
		_, err := fmt.Fprintf(idle[i], "GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n", testBucket, names.S3Host)
		require.NoError(t, err)
		_, err = idle[i].Read(make([]byte, 4096))
		require.NoError(t, err, "it is refused, and stays open")
	}
	began := time.Now()
	require.NoError(t, putting(testBucket)(t.Context(), client))
	require.NoError(t, getting(testBucket)(t.Context(), client))
	require.Less(t, time.Since(began), 5*time.Second)
	for _, conn := range idle {
		require.NoError(t, conn.Close())
	}
	eventually(t, "no goroutine stays", func() bool { return runtime.NumGoroutine() <= before+10 })
}

func TestNoMoreConnectionsThanTheLimit(t *testing.T) {
	r := newRig(t, garagetest.StartWith(t, 1, garagetest.Options{Bare: true}), func(c *Config) { c.MaxConnections = 2 })
	first, _ := r.dial(), r.dial()
	third := make(chan error, 1)
	go func() {
		response, err := r.http().Get(names.S3URL + "/")
		if err == nil {
			err = response.Body.Close()
		}
		third <- err
	}()
	select {
	case err := <-third:
		t.Fatalf("the third was let in: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	require.NoError(t, first.Close()) // none was idle
	require.NoError(t, <-third, "it waits for its turn")
	require.Equal(t, http.StatusOK, r.admin("/livez", "").StatusCode, "the admin port has its own")
}

func TestIdleConnectionsMakeRoom(t *testing.T) {
	r := newRig(t, garagetest.StartWith(t, 1, garagetest.Options{Bare: true}), func(c *Config) { c.MaxConnections = 3 })
	connections := make([]*tls.Conn, 6)
	for i := range connections {
		connections[i] = r.dial()
		askOn(t, connections[i])
	}
	for i, conn := range connections {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(waitLimit)))
		if i < 3 {
			_, err := conn.Read(make([]byte, 1))
			require.Error(t, err, "the longest idle are closed")
			continue
		}
		askOn(t, conn)
	}
}

func TestAClientThatDoesNotReadIsGivenUp(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, func(c *Config) { c.StallTimeout = 500 * time.Millisecond })
	client := r.s3(r.key(testBucket, access.ReadWrite), noRetry, pathStyle)
	put(t, client, "large", pattern(32<<20))
	download, err := s3.NewPresignClient(client).PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(testBucket), Key: aws.String("large")})
	require.NoError(t, err)
	conn := r.dial()
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", strings.TrimPrefix(download.URL, names.S3URL), names.S3Host)
	require.NoError(t, err)
	eventually(t, "it is being answered", func() bool { return r.server.gate.Running() == 1 })
	eventually(t, "nothing is left running", func() bool { return r.server.gate.Running() == 0 })
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.Error(t, err, "what it gets after all does not look whole")
}

func TestAClockThatIsWrongIsTold(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	client := r.s3(r.keyFor(testBucket, access.ReadWrite, time.Hour), noRetry)
	for skew, code := range map[time.Duration]string{
		14 * time.Minute: "", -14 * time.Minute: "", 16 * time.Minute: "RequestTimeTooSkewed", -16 * time.Minute: "RequestTimeTooSkewed",
	} {
		r.clock.Store(int64(skew))
		err := putting(testBucket)(t.Context(), client)
		if code == "" {
			require.NoError(t, err, skew)
			continue
		}
		requireCode(t, err, code)
	}
}
