package migration_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

const (
	startLimit = time.Minute
	stopLimit  = 20 * time.Second
	tick       = 20 * time.Millisecond
)

// program is the real gateway, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "migration-test-")
	if err != nil {
		return "", err
	}
	built := filepath.Join(dir, "gateway")
	build := exec.Command("go", "build", "-o", built, "github.com/deckhouse/system-s3/images/gateway")
	build.Stderr = os.Stderr
	return built, build.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if built, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(built)) // nobody reads the tests' leavings
	}
	os.Exit(code)
}

// replica is a gateway in front of a Garage node, as in a Pod.
type replica struct {
	t         testing.TB
	args      []string
	s3, admin string // addresses
	told      *bytes.Buffer
	process   *exec.Cmd
	exited    chan struct{}
}

// realPlane is a Garage cluster behind its gateways.
type realPlane struct {
	id       string
	cluster  *garagetest.Cluster
	replicas []*replica
}

func newRealPlane(t testing.TB, id, shared string, nodes int) *realPlane {
	t.Helper()
	p := &realPlane{id: id, cluster: garagetest.Start(t, nodes)}
	for i := range p.cluster.Nodes {
		dir := t.TempDir()
		for name, content := range map[string][]byte{
			names.SeedKey:         []byte(hex.EncodeToString(p.cluster.Seed)),
			names.AdminTokenKey:   []byte(p.cluster.AdminToken),
			names.MetricsTokenKey: []byte(p.cluster.MetricsToken),
		} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
		}
		r := &replica{t: t, s3: freeAddress(t), admin: freeAddress(t), told: &bytes.Buffer{}}
		r.args = []string{
			"serve", "--s3-address", r.s3, "--admin-address", r.admin, "--metrics-address", freeAddress(t),
			"--tls-dir", shared, "--key-ring", filepath.Join(shared, names.KeyRingKey), "--plane-dir", dir, "--volume-dir", dir,
			"--garage-s3", p.cluster.Nodes[i].S3URL(), "--garage-admin", p.cluster.Nodes[i].AdminURL(), "--drain-delay", "2s",
		}
		p.replicas = append(p.replicas, r)
		r.start()
		t.Cleanup(func() {
			r.stop()
			if text := r.told.Bytes(); t.Failed() {
				t.Logf("gateway %d of plane %s told:\n%s", i, id, text[max(0, len(text)-4<<10):])
			}
		})
	}
	return p
}

func (r *replica) start() {
	r.t.Helper()
	built, err := program()
	require.NoError(r.t, err, "build the gateway")
	r.process = exec.CommandContext(context.Background(), built, r.args...)
	r.process.Stdout, r.process.Stderr = r.told, r.told
	// A killed test leaves no gateway behind.
	r.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(r.t, r.process.Start())
	r.exited = make(chan struct{})
	go func(process *exec.Cmd, exited chan struct{}) {
		defer close(exited)
		_ = process.Wait() // its end is asked for by a signal
	}(r.process, r.exited)
	require.Eventually(r.t, func() bool {
		conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", r.s3)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, startLimit, tick, "the gateway listens")
}

func (r *replica) stop() {
	_ = r.process.Process.Signal(syscall.SIGTERM) // fails only when the process is gone
	select {
	case <-r.exited:
	case <-time.After(stopLimit):
		_ = r.process.Process.Kill()
		<-r.exited
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// writeCertificate makes what both planes serve with.
func writeCertificate(t testing.TB, dir string) (ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, DNSNames: []string{names.S3Host, "*." + names.S3Host},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, content := range map[string][]byte{
		names.CAKey: certificate, "tls.crt": certificate,
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return string(certificate)
}
