package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const waitLimit = 10 * time.Second

func transportTo(t *testing.T, address string) *Transport {
	t.Helper()
	transport := &Transport{Address: address, DialTimeout: waitLimit, AnswerTimeout: waitLimit, MaxIdle: 4}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// serve starts net/http's server, whose connections are counted.
func serve(t *testing.T, handler http.HandlerFunc) (*Transport, *atomic.Int64) {
	t.Helper()
	var opened atomic.Int64
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return transportTo(t, server.Listener.Addr().String()), &opened
}

func newRequest(t *testing.T, method string, body io.Reader, length int64) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://garage:3900/bucket/a%20b?x=%2F", body)
	require.NoError(t, err)
	r.ContentLength = length
	r.Header.Set("X-Amz-Meta-Colour", "blue")
	return r
}

func echo(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("X-Uri", r.RequestURI)
	w.Header().Set("X-Host", r.Host)
	w.Header().Set("X-Meta", r.Header.Get("X-Amz-Meta-Colour"))
	_, _ = w.Write(data)
}

func TestRequestsGoThroughAsTheyAre(t *testing.T) {
	transport, opened := serve(t, echo)
	large := strings.Repeat("0123456789", 100_000)
	cases := map[string]struct {
		reason string
		method string
		body   string
		length int64
	}{
		"no body":          {"", http.MethodGet, "", 0},
		"a small body":     {"one packet with its head", http.MethodPut, "abc", 3},
		"a large body":     {"", http.MethodPut, large, int64(len(large))},
		"an empty body":    {"its length must be told", http.MethodPut, "", 0},
		"a post of nought": {"", http.MethodPost, "", 0},
		"unknown length":   {"forms are longer than their file", http.MethodPut, large, -1},
		"delete":           {"", http.MethodDelete, "", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			response, err := transport.RoundTrip(newRequest(t, c.method, strings.NewReader(c.body), c.length))
			require.NoError(t, err, c.reason)
			data, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, c.body, string(data))
			require.Equal(t, "/bucket/a%20b?x=%2F", response.Header.Get("X-Uri"))
			require.Equal(t, "garage:3900", response.Header.Get("X-Host"))
			require.Equal(t, "blue", response.Header.Get("X-Meta"))
		})
	}
	require.EqualValues(t, 1, opened.Load(), "a connection is used again and again")
}

func TestAHeadHasNoBody(t *testing.T) {
	transport, opened := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1000") })
	for range 3 {
		response, err := transport.RoundTrip(newRequest(t, http.MethodHead, http.NoBody, 0))
		require.NoError(t, err)
		require.EqualValues(t, 1000, response.ContentLength)
		data, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Empty(t, data)
		require.NoError(t, response.Body.Close())
	}
	require.EqualValues(t, 1, opened.Load())
}

func TestWhatIsNotFitIsNotSent(t *testing.T) {
	transport, _ := serve(t, echo)
	for name, change := range map[string]func(*http.Request){
		"a line break in a header":      func(r *http.Request) { r.Header["X-A"] = []string{"b\r\nX-Evil: 1"} },
		"a line break in a header name": func(r *http.Request) { r.Header["X-A: 1\r\nX-Evil"] = []string{"1"} },
		"a space in the target":         func(r *http.Request) { r.URL = &url.URL{Opaque: "/a HTTP/1.1\r\nX-Evil: 1"} },
		"a line break in the host":      func(r *http.Request) { r.Host = "a\r\nX-Evil: 1" },
		"more body than announced": func(r *http.Request) {
			r.Method, r.ContentLength, r.Body = "PUT", 1, io.NopCloser(strings.NewReader("ab"))
		},
		"less body than announced": func(r *http.Request) {
			r.Method, r.ContentLength, r.Body = "PUT", 3, io.NopCloser(strings.NewReader("ab"))
		},
		"no body where one is announced": func(r *http.Request) {
			r.Method, r.ContentLength = "PUT", 3
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRequest(t, http.MethodGet, http.NoBody, 0)
			change(r)
			_, err := transport.RoundTrip(r)
			require.Error(t, err)
		})
	}
}

// failing fails in place of the last bytes.
type failing struct {
	data   io.Reader
	err    error
	closed bool
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.data.Read(p)
	if errors.Is(err, io.EOF) {
		err = f.err
	}
	return n, err
}

func (f *failing) Close() error { f.closed = true; return nil }

func TestABodyThatFailsIsNotCompletedAndTellsWhy(t *testing.T) {
	whole := make(chan bool, 1)
	transport, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		whole <- err == nil
		w.WriteHeader(http.StatusOK)
	})
	wrong := errors.New("the signature is wrong")
	body := &failing{data: strings.NewReader(strings.Repeat("x", 200_000)), err: wrong}
	r := newRequest(t, http.MethodPut, body, 200_000)
	_, err := transport.RoundTrip(r)
	require.ErrorIs(t, err, wrong)
	require.True(t, body.closed)
	require.False(t, <-whole, "all bytes were there, but the reader that verifies has not said that all is well")
}

// scripted is a server that does what the test says, connection by connection.
func scripted(t *testing.T, connections ...func(net.Conn, *bufio.Reader)) *Transport {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for _, script := range connections {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			script(conn, bufio.NewReader(conn))
			_ = conn.Close()
		}
	}()
	return transportTo(t, listener.Addr().String())
}

func answerTo(conn net.Conn, r *bufio.Reader, answer string) {
	if _, err := http.ReadRequest(r); err == nil {
		_, _ = io.WriteString(conn, answer)
	}
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func get(t *testing.T, transport *Transport) (string, error) {
	t.Helper()
	response, err := transport.RoundTrip(newRequest(t, http.MethodGet, http.NoBody, 0))
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(response.Body)
	return string(data), errors.Join(err, response.Body.Close())
}

func TestAKeptConnectionThatWasClosedIsNotUsed(t *testing.T) {
	closed := make(chan struct{})
	transport := scripted(t,
		func(conn net.Conn, r *bufio.Reader) {
			answerTo(conn, r, fine)
			_ = conn.Close()
			close(closed)
		},
		func(conn net.Conn, r *bufio.Reader) { answerTo(conn, r, fine) },
	)
	_, err := get(t, transport)
	require.NoError(t, err)
	<-closed
	r := newRequest(t, http.MethodPut, strings.NewReader("abc"), 3)
	response, err := transport.RoundTrip(r)
	require.NoError(t, err, "even a request that cannot be repeated succeeds")
	require.NoError(t, response.Body.Close())
}

func TestAQuestionThatAKeptConnectionDidNotTakeInIsRepeated(t *testing.T) {
	transport := scripted(t,
		func(conn net.Conn, r *bufio.Reader) {
			answerTo(conn, r, fine)
			_, _ = http.ReadRequest(r) // hangs up without an answer
		},
		func(conn net.Conn, r *bufio.Reader) { answerTo(conn, r, fine) },
	)
	for range 2 {
		answer, err := get(t, transport)
		require.NoError(t, err)
		require.Equal(t, "ok", answer)
	}
}

func TestAnUploadIsNotRepeated(t *testing.T) {
	transport := scripted(t,
		func(conn net.Conn, r *bufio.Reader) {
			answerTo(conn, r, fine)
			_, _ = http.ReadRequest(r)
		},
		func(conn net.Conn, r *bufio.Reader) { answerTo(conn, r, fine) },
	)
	_, err := get(t, transport)
	require.NoError(t, err)
	_, err = transport.RoundTrip(newRequest(t, http.MethodPut, strings.NewReader("abc"), 3))
	require.ErrorIs(t, err, errUnused)
}

func TestAnAnswerThatComesBeforeTheEndOfTheRequestIsSeen(t *testing.T) {
	transport := scripted(t, func(conn net.Conn, r *bufio.Reader) {
		answerTo(conn, r, "HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\nquota")
	})
	r := newRequest(t, http.MethodPut, io.LimitReader(endless{}, 1<<40), 1<<40)
	response, err := transport.RoundTrip(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, response.StatusCode)
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, "quota", string(data))
	require.NoError(t, response.Body.Close())
	require.Nil(t, transport.take(), "the connection is not kept")
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestABrokenAnswerIsNotAWholeOne(t *testing.T) {
	for name, answer := range map[string]string{
		"less than announced": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
		"a torn chunk":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
		"a torn head":         "HTTP/1.1 200 OK\r\nContent-Le",
		"no answer":           "",
		"garbage":             "\x00\x01\x02 what?\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := get(t, scripted(t, func(conn net.Conn, r *bufio.Reader) { answerTo(conn, r, answer) }))
			require.Error(t, err)
		})
	}
}

func TestAnInterimAnswerIsPassedOver(t *testing.T) {
	answer, err := get(t, scripted(t, func(conn net.Conn, r *bufio.Reader) {
		answerTo(conn, r, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n"+fine)
	}))
	require.NoError(t, err)
	require.Equal(t, "ok", answer)
}

func TestTheEndOfTheContextEndsEverything(t *testing.T) {
	before := runtime.NumGoroutine()
	never := make(chan struct{})
	asked := make(chan struct{}, 1)
	transport := scripted(t, func(_ net.Conn, r *bufio.Reader) {
		_, _ = http.ReadRequest(r)
		asked <- struct{}{}
		<-never
	})
	cause := errors.New("the client has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(cause)
	}()
	_, err := transport.RoundTrip(newRequest(t, http.MethodGet, http.NoBody, 0).WithContext(ctx))
	require.Error(t, err)
	require.ErrorIs(t, context.Cause(ctx), cause)
	close(never)
	_, err = transport.RoundTrip(newRequest(t, http.MethodGet, http.NoBody, 0).WithContext(ctx))
	require.Error(t, err, "it does not even begin")
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, waitLimit, 10*time.Millisecond)
}

func TestAServerThatDoesNotAnswerIsGivenUp(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	transport := scripted(t, func(net.Conn, *bufio.Reader) { <-never })
	transport.AnswerTimeout = 50 * time.Millisecond
	_, err := get(t, transport)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
}

func TestAServerThatTakesNoMoreIsGivenUp(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	transport := scripted(t, func(net.Conn, *bufio.Reader) { <-never })
	transport.AnswerTimeout = 50 * time.Millisecond
	_, err := transport.RoundTrip(newRequest(t, http.MethodPut, io.LimitReader(endless{}, 1<<40), 1<<40))
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
}

func TestAServerThatIsBeingStartedIsWaitedFor(t *testing.T) {
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	transport := transportTo(t, address)
	_, err = get(t, transport)
	require.ErrorIs(t, err, unix.ECONNREFUSED, "without patience")
	transport.Patience = waitLimit
	got := make(chan error, 1)
	go func() {
		_, err := get(t, transport)
		got <- err
	}()
	listener, err = config.Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	conn, err := listener.Accept()
	require.NoError(t, err)
	answerTo(conn, bufio.NewReader(conn), fine)
	require.NoError(t, <-got)
	require.NoError(t, conn.Close())
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	const parallel = 10
	var arrived atomic.Int64
	all := make(chan struct{})
	transport, opened := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if arrived.Add(1) == parallel {
			close(all)
		}
		select {
		case <-all:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusNoContent)
	})
	errs := make(chan error, parallel)
	for range parallel {
		go func() {
			response, err := transport.RoundTrip(newRequest(t, http.MethodGet, http.NoBody, 0))
			if err == nil {
				err = response.Body.Close()
			}
			errs <- err
		}()
	}
	for range parallel {
		require.NoError(t, <-errs)
	}
	require.EqualValues(t, parallel, opened.Load())
	require.Len(t, transport.idle, transport.MaxIdle)
	transport.CloseIdleConnections()
	require.Empty(t, transport.idle)
}
