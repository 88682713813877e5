package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/deckhouse/system-s3/lib/access"
)

func TestParse(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		args      []string
		variables map[string]string
		want      func(*testing.T, *options)
		fails     string
	}{
		"nothing": {reason: "defaults are those of the Pod", want: func(t *testing.T, o *options) {
			t.Helper()
			assert.Equal(t, options{
				probes: ":8081", metrics: ":8445", sts: ":8443", page: ":8446", tlsDir: "/etc/system-s3/tls",
				ringFile: "/etc/system-s3/key-ring/ring.json", keyLifetime: 30 * time.Minute,
			}, *o)
		}},
		"environment": {
			reason: "the chart sets it", variables: map[string]string{"KEY_LIFETIME_SECONDS": "20", "LOG_LEVEL": "debug"},
			want: func(t *testing.T, o *options) {
				t.Helper()
				assert.Equal(t, 20*time.Second, o.keyLifetime)
				assert.Equal(t, zapcore.DebugLevel, o.level)
			},
		},
		"version": {reason: "no options: print and go", args: []string{"--version"}, want: func(t *testing.T, o *options) {
			t.Helper()
			assert.Nil(t, o)
		}},
		"lifetime of words": {reason: "never guess", variables: map[string]string{"KEY_LIFETIME_SECONDS": "half an hour"}, fails: "KEY_LIFETIME_SECONDS"},
		"lifetime of zero":  {reason: "keys would be born dead", variables: map[string]string{"KEY_LIFETIME_SECONDS": "0"}, fails: "positive"},
		"level":             {reason: "never guess", variables: map[string]string{"LOG_LEVEL": "loud"}, fails: "LOG_LEVEL"},
		"flag":              {reason: "a typing mistake is told", args: []string{"--stsaddress=x"}, fails: "stsaddress"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := parse(c.args, func(name string) string { return c.variables[name] })
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails, c.reason)
				return
			}
			require.NoError(t, err, c.reason)
			c.want(t, o)
		})
	}
}

// certificate writes a certificate for host into the folder and returns it as a pool.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"sts.test"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), public, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(public))
	return pool
}

func TestSTSServerTakesUpNewCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := certificate(t, dir)
	watcher, err := certwatcher.New(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	require.NoError(t, err)
	var config net.ListenConfig
	reserved, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := reserved.Addr().String()
	require.NoError(t, reserved.Close())
	server := &tlsServer{
		name: "test", connections: maxConnections,
		address: address, certificate: watcher.GetCertificate, ready: make(chan struct{}),
		handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }),
	}
	require.ErrorIs(t, server.check(), errNotListening)
	ended := make(chan error, 1)
	go func() { ended <- server.Start(t.Context()) }()
	<-server.ready
	require.NoError(t, server.check())
	assert.False(t, server.NeedLeaderElection(), "every replica answers")

	get := func(pool *x509.CertPool) error {
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "sts.test", MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
		}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address, http.NoBody)
		require.NoError(t, err)
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	require.NoError(t, get(old))
	fresh := certificate(t, dir)
	require.NoError(t, watcher.ReadCertificate())
	require.NoError(t, get(fresh))
	require.Error(t, get(old))
}

func TestReadRing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ring.json")
	_, err := readRing(file)
	require.ErrorContains(t, err, "read the key ring")
	ring := access.Ring{}.Rotate(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), bytes.Repeat([]byte{7}, 32))
	data, err := ring.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o600))
	got, err := readRing(file)
	require.NoError(t, err)
	assert.Len(t, got.Keys, 1)
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err = readRing(file)
	require.ErrorContains(t, err, "parse the key ring")
}

func TestDebugLog(t *testing.T) {
	t.Parallel()
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 1})
	debugLog(log).Println("http: TLS handshake error")
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], `"http: TLS handshake error"`)
}
