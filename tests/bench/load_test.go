package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/stretchr/testify/require"
)

const (
	workers        = 8
	clientBuffer   = 64 << 10
	requestTimeout = 30 * time.Second
	unsigned       = "UNSIGNED-PAYLOAD"
)

// load is one kind of request.
type load struct {
	name   string
	method string
	size   int
}

func (l load) key(worker int) string { return fmt.Sprintf("object-%d-%d", l.size, worker) }

func plainClient() *http.Client {
	return &http.Client{Transport: newTransport(), Timeout: requestTimeout}
}

func tlsClient(cert certificate) *http.Client {
	transport := newTransport()
	transport.TLSClientConfig = cert.config()
	return &http.Client{Transport: transport, Timeout: requestTimeout}
}

func newTransport() *http.Transport {
	return &http.Transport{
		MaxIdleConnsPerHost: workers, DisableCompression: true, ReadBufferSize: clientBuffer, WriteBufferSize: clientBuffer,
	}
}

// measured is what came of a load during a time.
type measured struct {
	requests  int
	took      time.Duration
	proxyCPU  time.Duration
	garageCPU time.Duration
	allCPU    time.Duration // client, proxy and Garage
}

// rate is requests per second.
func (m measured) rate() float64 { return float64(m.requests) / m.took.Seconds() }

// perRequest is CPU per request, in microseconds.
func (m measured) perRequest(cpu time.Duration) float64 {
	return float64(cpu.Microseconds()) / float64(max(m.requests, 1))
}

// signed is the worker's request, signed once: signing costs every door's client the same, so it is left out, and a
// signature is good for longer than a measurement.
func (l load) signed(t testing.TB, d *door, worker int) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), l.method, d.url+"/"+benchBucket+"/"+l.key(worker), http.NoBody)
	require.NoError(t, err)
	if l.method == http.MethodPut {
		request.ContentLength = int64(l.size)
	}
	request.Header.Set("X-Amz-Content-Sha256", unsigned)
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	require.NoError(t, signer.SignHTTP(t.Context(), d.key, request, unsigned, "s3", d.region, time.Now()))
	return request
}

// run puts the load on a door for a time.
func (l load) run(t testing.TB, d *door, garagePID int, lasting time.Duration) measured {
	t.Helper()
	requests := make([]*http.Request, workers)
	for worker := range workers {
		requests[worker] = l.signed(t, d, worker)
		l.once(t, d, requests[worker]) // connections are made beforehand
	}
	var count atomic.Int64
	var running sync.WaitGroup
	errs := make(chan error, workers)
	var proxyBefore time.Duration
	if d.pid != 0 {
		proxyBefore = cpuTime(t, d.pid)
	}
	clientBefore, garageBefore := ownCPUTime(t, os.Getpid()), ownCPUTime(t, garagePID)
	began := time.Now()
	for _, request := range requests {
		running.Go(func() {
			buffer := make([]byte, clientBuffer)
			for time.Since(began) < lasting {
				if err := l.do(d, request, buffer); err != nil {
					errs <- err
					return
				}
				count.Add(1)
			}
		})
	}
	running.Wait()
	m := measured{requests: int(count.Load()), took: time.Since(began)}
	close(errs)
	require.NoError(t, <-errs, "%s by %s", l.name, d.name)
	m.garageCPU = ownCPUTime(t, garagePID) - garageBefore
	m.allCPU = m.garageCPU + ownCPUTime(t, os.Getpid()) - clientBefore // without its children: the doors are among them
	if d.pid != 0 {
		m.proxyCPU = cpuTime(t, d.pid) - proxyBefore
		m.allCPU += m.proxyCPU
	}
	return m
}

func (l load) once(t testing.TB, d *door, request *http.Request) {
	t.Helper()
	require.NoError(t, l.do(d, request, make([]byte, clientBuffer)), "%s by %s", l.name, d.name)
}

var errShort = errors.New("the answer has another length")

// do sends one request and reads its answer.
func (l load) do(d *door, signed *http.Request, buffer []byte) error {
	request := signed.WithContext(signed.Context())
	if l.method == http.MethodPut {
		request.Body = io.NopCloser(bytes.NewReader(body(l.size)))
	}
	response, err := d.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body) // for the message
		return fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	n, err := io.CopyBuffer(writer{}, response.Body, buffer)
	if err != nil {
		return err
	}
	if l.method == http.MethodGet && n != int64(l.size) {
		return errShort
	}
	return nil
}

// writer discards without a buffer of its own.
type writer struct{}

func (writer) Write(p []byte) (int, error) { return len(p), nil }

var largest = sync.OnceValue(func() []byte {
	data := make([]byte, 1<<20)
	_, _ = rand.Read(data) // never fails
	return data
})

// body does not compress. It is the same in every upload, so that Garage, which keeps equal blocks once, does not wait
// for the disk and the doors' share is the larger.
func body(size int) []byte { return largest()[:size] }

func randomBytes(t testing.TB) []byte {
	t.Helper()
	data := make([]byte, sha256.Size)
	_, err := rand.Read(data)
	require.NoError(t, err)
	return data
}

// containsArg tells whether a NUL-separated command line holds the argument.
func containsArg(cmdline []byte, arg string) bool {
	for part := range strings.SplitSeq(string(cmdline), "\x00") {
		if part == arg {
			return true
		}
	}
	return false
}
