// Package loopback runs the peer's suite on this machine without a cluster: one real Garage node and the gateway's
// program on loopback. Keys are issued as STS issues them. It is the fast form; the whole chain is the sandbox's.
package loopback

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/suite/front"
)

const (
	keyLife    = time.Hour
	startLimit = time.Minute
	glance     = 50 * time.Millisecond
)

// store makes buckets by Garage's admin API.
type store struct {
	cluster *garagetest.Cluster
	ring    access.Ring
	count   atomic.Int64
}

// Create implements front.Store.
func (s *store) Create(ctx context.Context) (front.Bucket, error) {
	uid := fmt.Sprint("uid-", s.count.Add(1))
	name := names.Bucket("d8-suite", "bucket", uid)
	admin := s.cluster.Client()
	made, err := admin.CreateBucket(ctx)
	if err == nil {
		_, err = admin.AddBucketAlias(ctx, made.ID, name)
	}
	if err == nil {
		_, err = admin.AllowBucketKey(ctx, made.ID, s.cluster.KeyID, garage.Permissions{Read: true, Write: true})
	}
	if err != nil {
		return front.Bucket{}, fmt.Errorf("make bucket %s: %w", name, err)
	}
	key, err := s.key(name)
	if err != nil {
		return front.Bucket{}, err
	}
	return front.Bucket{Name: name, Keys: key}, nil
}

// Delete implements front.Store: what is deleted here goes with the test.
func (*store) Delete(context.Context, front.Bucket) error { return nil }

func (s *store) key(bucket string) (aws.CredentialsProvider, error) {
	signing, err := s.ring.Signing(time.Now())
	if err != nil {
		return nil, fmt.Errorf("choose the signing key: %w", err)
	}
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails
	key, err := access.Issue(signing, access.Grant{
		Bucket: bucket, Permission: access.ReadWrite, Subject: "system:serviceaccount:d8-suite:suite", Expires: time.Now().Add(keyLife),
	}, nonce)
	if err != nil {
		return nil, fmt.Errorf("issue a key: %w", err)
	}
	return credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, ""), nil
}

// newFront starts Garage and the gateway and a front to them.
func newFront(t *testing.T) *front.Front {
	t.Helper()
	cluster := garagetest.Start(t, 1)
	s := &store{cluster: cluster, ring: access.Ring{}.Rotate(time.Now().Add(-time.Hour), random(t))}
	dir := t.TempDir()
	ring, err := s.ring.Marshal()
	require.NoError(t, err)
	pool, certificate, key := authority(t)
	for name, data := range map[string][]byte{
		"ring.json": ring, "plane/" + names.SeedKey: []byte(hex.EncodeToString(cluster.Seed)),
		"plane/" + names.AdminTokenKey: []byte(cluster.AdminToken), "plane/" + names.MetricsTokenKey: []byte(cluster.MetricsToken),
		"tls/" + names.CAKey: certificate, "tls/tls.crt": certificate, "tls/tls.key": key,
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	address := startGateway(t, cluster, dir)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
		TLSClientConfig:    &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		DisableCompression: true, MaxIdleConnsPerHost: 16, ExpectContinueTimeout: time.Minute,
	}
	t.Cleanup(transport.CloseIdleConnections)
	f := &front.Front{Store: s, Endpoint: &url.URL{Scheme: "https", Host: names.S3Host}, Transport: transport}
	require.NoError(t, f.Open(t.Context()))
	return f
}

func startGateway(t *testing.T, cluster *garagetest.Cluster, dir string) (address string) {
	t.Helper()
	binary := filepath.Join(dir, "gateway")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../../..", "-o", binary, "./images/gateway").CombinedOutput()
	require.NoError(t, err, string(out))
	address = freeAddress(t)
	var log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, "serve", "--s3-address", address, "--admin-address", freeAddress(t),
		"--metrics-address", freeAddress(t),
		"--tls-dir", filepath.Join(dir, "tls"), "--key-ring", filepath.Join(dir, "ring.json"), "--plane-dir", filepath.Join(dir, "plane"),
		"--volume-dir", dir, "--garage-s3", cluster.S3URL(), "--garage-admin", cluster.AdminURL(), "--drain-delay", "10ms")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have stopped already
		_ = cmd.Wait()
		if t.Failed() {
			t.Log("the gateway's log ends with:\n" + tail(log.String()))
		}
	})
	require.Eventually(t, func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}, startLimit, glance, "the gateway listens")
	return address
}

func tail(log string) string {
	const shown = 4000
	return log[max(0, len(log)-shown):]
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}

func random(t *testing.T) []byte {
	t.Helper()
	data := make([]byte, 32)
	_, err := rand.Read(data)
	require.NoError(t, err)
	return data
}

// authority is a certificate for the S3 host that is its own CA.
func authority(t *testing.T) (pool *x509.CertPool, certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(keyLife), DNSNames: []string{names.S3Host, "*." + names.S3Host},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool = x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(certificate))
	return pool, certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: privateDER})
}
