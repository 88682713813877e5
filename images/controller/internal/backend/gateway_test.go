package backend_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

// gateway is a TLS server with a certificate for the host; it returns its URL and its CA.
func gateway(t *testing.T, host string, handler http.HandlerFunc) (url, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func volumes(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/gateway/v1/volume" || r.Header.Get("Authorization") != "Bearer token" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, _ = io.WriteString(w, `{"total":1000,"free":400}`)
}

func TestVolumeOverTLS(t *testing.T) {
	t.Parallel()
	url, ca := gateway(t, names.S3Host, volumes)
	otherURL, otherCA := gateway(t, "elsewhere.example", volumes)
	gateways := &backend.Gateways{}

	client, err := gateways.Client(ca)
	require.NoError(t, err)
	space, err := backend.Volume(t.Context(), client, url, "token")
	require.NoError(t, err, "a Pod is reached by IP and proves the name of the service")
	assert.Equal(t, backend.Space{Total: 1000, Free: 400}, space)
	_, err = backend.Volume(t.Context(), client, url, "wrong")
	require.ErrorContains(t, err, "HTTP 401")
	_, err = backend.Volume(t.Context(), client, otherURL, "token")
	require.Error(t, err, "the certificate is of another CA")

	again, err := gateways.Client(ca)
	require.NoError(t, err)
	assert.Same(t, client, again, "connections are reused")
	changed, err := gateways.Client(otherCA)
	require.NoError(t, err)
	assert.NotSame(t, client, changed)
	_, err = backend.Volume(t.Context(), changed, otherURL, "token")
	require.Error(t, err, "the certificate is for another name")
	_, err = gateways.Client("no PEM")
	require.Error(t, err)
}

func TestAddress(t *testing.T) {
	t.Parallel()
	assert.Equal(t, backend.Address{Admin: "https://10.1.2.3:8444", S3: "https://10.1.2.3:8443", RPC: "10.1.2.3:3901"},
		(&backend.Gateways{}).Address("10.1.2.3"))
	assert.Equal(t, "https://[fd00::3]:8444", (&backend.Gateways{}).Address("fd00::3").Admin)
}

func TestBoard(t *testing.T) {
	t.Parallel()
	board := backend.NewBoard()
	woken := func() bool {
		select {
		case <-board.Wake():
			return true
		default:
			return false
		}
	}
	_, known := board.Read()
	assert.False(t, known)
	starting := backend.Store{Exists: true, Ready: plan.Verdict{Reason: plan.ReasonStarting}}
	ready := backend.Store{Exists: true, Ready: plan.Verdict{OK: true}, Connection: &backend.Connection{Plane: "a"}}

	board.Post(starting)
	assert.True(t, woken(), "the first news")
	board.Post(starting)
	assert.False(t, woken(), "no news")
	board.Post(ready)
	board.Post(starting)
	board.Post(ready)
	assert.True(t, woken())
	assert.False(t, woken(), "several changes are told once")
	board.Post(backend.Store{Exists: true, Ready: plan.Verdict{OK: true}, Connection: &backend.Connection{Plane: "a"}})
	assert.False(t, woken(), "another connection to the same store is no news")
	got, known := board.Read()
	assert.True(t, known)
	assert.NotNil(t, got.Connection)
	board.Clear()
	_, known = board.Read()
	assert.False(t, known)
	board.Post(ready)
	assert.True(t, woken(), "known again")
}
