package wire

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// counting counts the writes of the connections it accepts.
type counting struct {
	net.Listener

	mu     sync.Mutex
	writes int
}

func (l *counting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &counted{conn.(*net.TCPConn), l}, nil
}

func (l *counting) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes
}

type counted struct {
	*net.TCPConn

	listener *counting
}

func (c *counted) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.TCPConn.SyscallConn()
	return countedRaw{raw, c.listener}, err
}

type countedRaw struct {
	syscall.RawConn

	listener *counting
}

func (r countedRaw) Write(f func(uintptr) bool) error {
	r.listener.mu.Lock()
	r.listener.writes++
	r.listener.mu.Unlock()
	return r.RawConn.Write(f)
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"s3"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// listen returns both ends of a connection after the handshake.
func listen(t *testing.T) (server *Conn, client *tls.Conn, counter *counting) {
	t.Helper()
	var config net.ListenConfig
	tcp, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	counter = &counting{Listener: tcp}
	listener := Listen(counter, &tls.Config{
		Certificates: []tls.Certificate{selfSigned(t)}, MinVersion: tls.VersionTLS13, DynamicRecordSizingDisabled: true,
	}, 1)
	t.Cleanup(func() { _ = listener.Close() })
	accepted := make(chan *Conn, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			close(accepted)
			return
		}
		wired, _ := conn.(*Conn)
		_ = wired.Handshake()
		accepted <- wired
	}()
	// It is about records on the wire; who the server is does not matter, and its certificate is its own.
	client, err = tls.Dial("tcp", tcp.Addr().String(), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	require.NoError(t, err)
	server = <-accepted
	require.NotNil(t, server)
	t.Cleanup(func() { _ = server.Close(); _ = client.Close() })
	counter.mu.Lock()
	counter.writes = 0
	counter.mu.Unlock()
	return server, client, counter
}

func random(t *testing.T, size int) []byte {
	t.Helper()
	data := make([]byte, size)
	_, err := rand.Read(data)
	require.NoError(t, err)
	return data
}

func TestTheRecordsOfAWriteLeaveTogether(t *testing.T) {
	cases := map[string]struct {
		reason string
		size   int
		writes int
	}{
		"one record":  {"", 1000, 1},
		"128 KiB":     {"what an answer is copied by", 128 << 10, 1},
		"1 MiB":       {"as much as the buffer holds at once", 1 << 20, 8},
		"two records": {"", 17 << 10, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server, client, counter := listen(t)
			data := random(t, c.size)
			sent := make(chan error, 1)
			go func() {
				_, err := server.Write(data)
				sent <- err
			}()
			got := make([]byte, c.size)
			_, err := io.ReadFull(client, got)
			require.NoError(t, err)
			require.NoError(t, <-sent)
			require.True(t, bytes.Equal(data, got))
			require.Equal(t, c.writes, counter.count(), c.reason)
			require.True(t, server.below.out == nil, "the buffer is given back")
		})
	}
}

func TestWhatIsHeldLeavesWithTheRelease(t *testing.T) {
	server, client, counter := listen(t)
	server.Hold()
	_, err := server.Write([]byte("head"))
	require.NoError(t, err)
	server.Hold()
	_, err = server.Write([]byte("body"))
	require.NoError(t, err)
	require.NoError(t, server.Release())
	require.Zero(t, counter.count())
	require.NoError(t, server.Release())
	require.Equal(t, 1, counter.count())
	got := make([]byte, 8)
	_, err = io.ReadFull(client, got)
	require.NoError(t, err)
	require.Equal(t, "headbody", string(got))
	var none *Conn
	none.Hold()
	require.NoError(t, none.Release())
}

func TestAClientThatLeavesIsToldByTheRelease(t *testing.T) {
	server, client, _ := listen(t)
	require.NoError(t, client.NetConn().Close())
	require.Eventually(t, func() bool {
		server.Hold()
		_, err := server.Write(random(t, 1000))
		released := server.Release()
		return err != nil || released != nil
	}, 10*time.Second, time.Millisecond)
}

func TestReadsTakeAllThatHasComeAndIdleConnectionsHaveNoBuffer(t *testing.T) {
	server, client, _ := listen(t)
	data := random(t, 1<<20)
	sent := make(chan error, 1)
	go func() {
		_, err := client.Write(data)
		sent <- err
	}()
	got := make([]byte, len(data))
	_, err := io.ReadFull(server, got)
	require.NoError(t, err)
	require.NoError(t, <-sent)
	require.True(t, bytes.Equal(data, got))
	require.True(t, server.below.in == nil)

	require.NoError(t, server.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	_, err = server.Read(got)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
	require.True(t, server.below.in == nil)
	require.NoError(t, server.SetReadDeadline(time.Time{}))
	go func() { _, _ = client.Write([]byte("on")) }()
	n, err := server.Read(got)
	require.NoError(t, err, "a deadline that has passed spoils nothing")
	require.Equal(t, "on", string(got[:n]))

	require.NoError(t, client.Close())
	_, err = server.Read(got)
	require.ErrorIs(t, err, io.EOF)
}

func TestAServerServesOnIt(t *testing.T) {
	var config net.ListenConfig
	tcp, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	answer := strings.Repeat("x", 300_000)
	server := &http.Server{ConnContext: Context, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := FromContext(r.Context())
		conn.Hold()
		_, _ = io.WriteString(w, answer)
		if err := conn.Release(); err != nil || conn == nil {
			panic(http.ErrAbortHandler)
		}
	})}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(Listen(tcp, &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}, MinVersion: tls.VersionTLS12}, 1))
	}()
	// Who the server is does not matter here, and its certificate is its own.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for range 3 {
		response, err := client.Get("https://" + tcp.Addr().String())
		require.NoError(t, err)
		data, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, answer, string(data))
	}
	client.CloseIdleConnections()
	require.NoError(t, server.Shutdown(t.Context()))
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	require.Nil(t, FromContext(context.Background()))
}
