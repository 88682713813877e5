package serving

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

// rig is a running gateway in front of a real Garage node, with a clock that the test moves.
type rig struct {
	t       testing.TB
	cluster *garagetest.Cluster
	server  *Server
	config  Config
	ring    access.Ring
	ca      *authority
	clock   atomic.Int64 // nanoseconds ahead of the wall clock
	logs    *observer.ObservedLogs
	dialTo  string // the address of another gateway, for clients
	stop    context.CancelFunc
	stopped chan error
}

const (
	testLife     = 30 * time.Minute
	shownEntries = 20 // of the log, when a test failed
)

// newRig starts a gateway in front of the cluster's first node; adjust may change the configuration.
func newRig(t testing.TB, cluster *garagetest.Cluster, adjust func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, cluster: cluster, ca: newAuthority(t)}
	dir := t.TempDir()
	core, logs := observer.New(zap.DebugLevel)
	r.logs = logs
	r.config = Default()
	r.config.S3Address, r.config.AdminAddress, r.config.Metrics = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	r.config.TLSDir = filepath.Join(dir, "tls")
	r.config.RingFile = filepath.Join(dir, "ring.json")
	r.config.PlaneDir = filepath.Join(dir, "plane")
	r.config.VolumeDir = dir
	r.config.GarageS3, r.config.GarageAdmin = cluster.S3URL(), cluster.AdminURL()
	r.config.ReloadPeriod = 50 * time.Millisecond
	r.config.DrainDelay = 50 * time.Millisecond
	r.config.Now = r.now
	r.config.Log = zap.New(core)
	r.ca.write(t, r.config.TLSDir)
	r.ring = access.Ring{}.Rotate(time.Now().Add(-time.Hour), randomBytes(t))
	r.writeRing()
	require.NoError(t, os.MkdirAll(r.config.PlaneDir, 0o700))
	r.writeFile(filepath.Join(r.config.PlaneDir, names.SeedKey), []byte(hex.EncodeToString(cluster.Seed)+"\n"))
	r.writeFile(filepath.Join(r.config.PlaneDir, names.AdminTokenKey), []byte(cluster.AdminToken))
	r.writeFile(filepath.Join(r.config.PlaneDir, names.MetricsTokenKey), []byte(cluster.MetricsToken))
	if adjust != nil {
		adjust(&r.config)
	}
	r.start()
	return r
}

func (r *rig) start() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	server, err := New(ctx, r.config)
	require.NoError(r.t, err)
	r.server, r.stop, r.stopped = server, cancel, make(chan error, 1)
	go func() { r.stopped <- server.Serve(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		// Garage waits ten seconds for open connections when it stops.
		http.DefaultClient.CloseIdleConnections()
		select {
		case err := <-r.stopped:
			require.NoError(r.t, err)
			r.stopped <- err
		case <-time.After(time.Minute):
			r.t.Error("the gateway does not stop")
		}
		if r.t.Failed() {
			entries := r.logs.All()
			for _, entry := range entries[max(0, len(entries)-shownEntries):] {
				r.t.Log(entry.Level, entry.Message, entry.ContextMap())
			}
		}
	})
}

func (r *rig) now() time.Time { return time.Now().Add(time.Duration(r.clock.Load())) }

func (r *rig) writeFile(path string, data []byte) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(path+".new", data, 0o600))
	require.NoError(r.t, os.Rename(path+".new", path))
}

func (r *rig) writeRing() {
	r.t.Helper()
	data, err := r.ring.Marshal()
	require.NoError(r.t, err)
	r.writeFile(r.config.RingFile, data)
}

// key issues a key for a bucket as STS does.
func (r *rig) key(bucket string, permission access.Permission) access.Key {
	r.t.Helper()
	return r.keyFor(bucket, permission, testLife)
}

func (r *rig) keyFor(bucket string, permission access.Permission, life time.Duration) access.Key {
	r.t.Helper()
	signing, err := r.ring.Signing(time.Now())
	require.NoError(r.t, err)
	key, err := access.Issue(signing, access.Grant{
		Bucket: bucket, Permission: permission, Subject: "system:serviceaccount:d8-test:consumer", Expires: time.Now().Add(life),
	}, [8]byte(randomBytes(r.t)))
	require.NoError(r.t, err)
	return key
}

// http is a client that reaches the gateway under every name and trusts its CA.
func (r *rig) http() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			address := r.dialTo
			if address == "" {
				address = r.server.S3Address()
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
		TLSClientConfig: &tls.Config{RootCAs: r.ca.pool(), MinVersion: tls.VersionTLS12},
	}}
}

// s3 is an SDK client with its default configuration: virtual-host style and default checksums.
func (r *rig) s3(key access.Key, options ...func(*s3.Options)) *s3.Client {
	client := r.http()
	r.t.Cleanup(client.CloseIdleConnections)
	return s3.New(s3.Options{
		Region:       names.Region,
		BaseEndpoint: aws.String(names.S3URL),
		Credentials:  credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, key.SessionToken),
		HTTPClient:   client,
		// What config.LoadDefaultConfig sets.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	}, options...)
}

// stopGarage ends Garage, which waits ten seconds for open connections.
func (r *rig) stopGarage() {
	r.server.closeIdle()
	http.DefaultClient.CloseIdleConnections()
	r.cluster.Nodes[0].Stop()
}

func pathStyle(o *s3.Options) { o.UsePathStyle = true }

func noRetry(o *s3.Options) { o.Retryer = aws.NopRetryer{} }

// admin asks the admin port.
func (r *rig) admin(path, token string) *http.Response {
	r.t.Helper()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: r.ca.pool(), ServerName: names.S3Host, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "https://"+r.server.AdminAddress()+path, http.NoBody)
	require.NoError(r.t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func (r *rig) readyStatus() int { return r.admin("/readyz", "").StatusCode }

func randomBytes(t testing.TB) []byte {
	t.Helper()
	data := make([]byte, 32)
	_, err := rand.Read(data)
	require.NoError(t, err)
	return data
}

// authority is a CA with a serving certificate for the S3 and STS hosts.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{key, cert}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// write writes a new serving certificate in the form of the Secret tls.
func (a *authority) write(t testing.TB, dir string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames:    []string{names.S3Host, "*." + names.S3Host, names.STSHost, names.S3Host + ".cluster.local", "*." + names.S3Host + ".cluster.local"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for name, block := range map[string]*pem.Block{
		names.CAKey: {Type: "CERTIFICATE", Bytes: a.cert.Raw},
		"tls.key":   {Type: "PRIVATE KEY", Bytes: keyDER},
		"tls.crt":   {Type: "CERTIFICATE", Bytes: der},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".new"), pem.EncodeToMemory(block), 0o600))
	}
	for _, name := range []string{names.CAKey, "tls.key", "tls.crt"} {
		require.NoError(t, os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name)))
	}
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert
}
