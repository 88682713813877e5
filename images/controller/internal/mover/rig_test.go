package mover_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/md5"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/mover"
	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

const (
	startLimit = time.Minute
	stopLimit  = 20 * time.Second
	tick       = 20 * time.Millisecond

	mib = 1 << 20
)

// store is a real Garage behind the real gateway.
type store struct {
	t       testing.TB
	cluster *garagetest.Cluster
	url     string // of the gateway
	s3      *s3.Client
}

// rig is two of them and a Mover between, as the controller makes it.
type rig struct {
	t              testing.TB
	source, target *store
	mover          *mover.Mover
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, source: newStore(t), target: newStore(t)}
	r.mover = r.newMover()
	return r
}

func (r *rig) newMover() *mover.Mover {
	return &mover.Mover{
		Source: mover.Side{S3: r.source.s3}, Target: mover.Side{S3: r.target.s3}, Progress: &mover.Progress{}, Log: testr.NewWithInterface(r.t, testr.Options{}),
	}
}

// story tells a part of a test on the same two stores.
func (r *rig) story(t *testing.T, name string, tell func(*testing.T, *rig)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		defer func(outer testing.TB) { r.t, r.source.t, r.target.t = outer, outer, outer }(r.t)
		r.t, r.source.t, r.target.t = t, t, t
		r.mover = r.newMover()
		tell(t, r)
	})
}

// bucket makes an empty bucket at both sides.
func (r *rig) bucket(t testing.TB) string {
	t.Helper()
	name := "bucket-" + strings.ToLower(rand.Text())
	r.source.cluster.CreateBucket(t, name)
	r.target.cluster.CreateBucket(t, name)
	return name
}

// gatewayProgram is the real program, built once.
var gatewayProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mover-test-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "gateway")
	build := exec.Command("go", "build", "-o", program, "github.com/deckhouse/system-s3/images/gateway")
	build.Stderr = os.Stderr
	return program, build.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if program, err := gatewayProgram(); err == nil {
		_ = os.RemoveAll(filepath.Dir(program)) // nobody reads the tests' leavings
	}
	os.Exit(code)
}

func newStore(t testing.TB) *store {
	t.Helper()
	cluster := garagetest.Start(t, 1)
	dir := t.TempDir()
	ca := writeCertificate(t, dir)
	ring, err := access.Ring{}.Rotate(time.Now().Add(-time.Hour), random(32)).Marshal()
	require.NoError(t, err)
	for name, content := range map[string][]byte{
		names.KeyRingKey:      ring,
		names.SeedKey:         []byte(hex.EncodeToString(cluster.Seed)),
		names.AdminTokenKey:   []byte(cluster.AdminToken),
		names.MetricsTokenKey: []byte(cluster.MetricsToken),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	address := freeAddress(t)
	startGateway(t, "--s3-address", address, "--admin-address", freeAddress(t), "--metrics-address", freeAddress(t),
		"--tls-dir", dir, "--key-ring", filepath.Join(dir, names.KeyRingKey), "--plane-dir", dir, "--volume-dir", dir,
		"--garage-s3", cluster.S3URL(), "--garage-admin", cluster.AdminURL(), "--drain-delay", "1ms")
	client, err := (&backend.Gateways{}).Client(ca)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	s := &store{t: t, cluster: cluster, url: "https://" + address}
	s.s3 = backend.S3(s.url, cluster.KeyID, cluster.KeySecret, client)
	require.Eventually(t, func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, startLimit, tick, "the gateway listens")
	return s
}

func startGateway(t testing.TB, args ...string) {
	t.Helper()
	program, err := gatewayProgram()
	require.NoError(t, err, "build the gateway")
	var told bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, append([]string{"serve"}, args...)...)
	cmd.Stdout, cmd.Stderr = &told, &told
	// A killed test leaves no gateway behind.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // its end is asked for by a signal
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails only when the process is gone
		select {
		case <-exited:
		case <-time.After(stopLimit):
			_ = cmd.Process.Kill()
			<-exited
		}
		if text := told.Bytes(); t.Failed() {
			t.Logf("a gateway told:\n%s", text[max(0, len(text)-4<<10):])
		}
	})
}

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

func freeAddress(t testing.TB) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}

func random(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.Read(data) // never fails
	return data
}

// put writes an object; adjust may be nil.
func (s *store) put(bucket, key string, data []byte, adjust func(*s3.PutObjectInput), options ...func(*s3.Options)) {
	s.t.Helper()
	require.NoError(s.t, s.tryPut(bucket, key, data, adjust, options...), "put %q", key)
}

func (s *store) tryPut(bucket, key string, data []byte, adjust func(*s3.PutObjectInput), options ...func(*s3.Options)) error {
	input := &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(data)}
	if adjust != nil {
		adjust(input)
	}
	_, err := s.s3.PutObject(s.t.Context(), input, options...)
	return err
}

func (s *store) remove(bucket, key string) {
	s.t.Helper()
	_, err := s.s3.DeleteObject(s.t.Context(), &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	require.NoError(s.t, err)
}

// putParts uploads an object in parts; adjust may be nil.
func (s *store) putParts(bucket, key string, parts [][]byte, adjust func(*s3.CreateMultipartUploadInput)) {
	s.t.Helper()
	input := &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key}
	if adjust != nil {
		adjust(input)
	}
	begun, err := s.s3.CreateMultipartUpload(s.t.Context(), input, plain)
	require.NoError(s.t, err)
	var completed []types.CompletedPart
	for i, data := range parts {
		number := int32(i*2 + 1) // part numbers may have gaps
		out, err := s.s3.UploadPart(s.t.Context(), &s3.UploadPartInput{
			Bucket: &bucket, Key: &key, UploadId: begun.UploadId, PartNumber: &number, Body: bytes.NewReader(data), ChecksumAlgorithm: input.ChecksumAlgorithm,
		}, plain)
		require.NoError(s.t, err)
		completed = append(completed, types.CompletedPart{
			PartNumber: &number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32, ChecksumCRC32C: out.ChecksumCRC32C,
			ChecksumCRC64NVME: out.ChecksumCRC64NVME, ChecksumSHA1: out.ChecksumSHA1, ChecksumSHA256: out.ChecksumSHA256,
		})
	}
	_, err = s.s3.CompleteMultipartUpload(s.t.Context(), &s3.CompleteMultipartUploadInput{
		Bucket: &bucket, Key: &key, UploadId: begun.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: completed},
	})
	require.NoError(s.t, err)
}

// plain gives no checksum to what asks for none.
func plain(o *s3.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired }

// etags is what the bucket has: a key's ETag.
func (s *store) etags(bucket string) map[string]string {
	s.t.Helper()
	found := map[string]string{}
	input := &s3.ListObjectsV2Input{Bucket: &bucket, EncodingType: types.EncodingTypeUrl} // XML cannot carry every key
	for pages := s3.NewListObjectsV2Paginator(s.s3, input); pages.HasMorePages(); {
		out, err := pages.NextPage(s.t.Context())
		require.NoError(s.t, err)
		for _, object := range out.Contents {
			key, err := url.PathUnescape(*object.Key)
			require.NoError(s.t, err)
			found[key] = *object.ETag
		}
	}
	return found
}

// told is all that a client is told of an object, but the time of its writing.
func (s *store) told(bucket, key string) (http.Header, string) {
	s.t.Helper()
	var header http.Header
	out, err := s.s3.GetObject(s.t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &key, ChecksumMode: types.ChecksumModeEnabled}, sniff(&header))
	require.NoError(s.t, err, "get %q", key)
	defer func() { require.NoError(s.t, out.Body.Close()) }()
	digest := md5.New()
	_, err = io.Copy(digest, out.Body)
	require.NoError(s.t, err, "read %q", key)
	for _, name := range []string{"Last-Modified", "Date", "X-Amz-Request-Id"} {
		header.Del(name)
	}
	return header, hex.EncodeToString(digest.Sum(nil))
}

// partSizes is the sizes of an object's parts.
func (s *store) partSizes(bucket, key string) []int64 {
	s.t.Helper()
	var sizes []int64
	for number, count := int32(1), int32(1); number <= count; number++ {
		out, err := s.s3.HeadObject(s.t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: &key, PartNumber: &number})
		require.NoError(s.t, err)
		count = aws.ToInt32(out.PartsCount)
		sizes = append(sizes, *out.ContentLength)
	}
	return sizes
}

// requireEqual compares every object of the bucket, whole.
func (r *rig) requireEqual(t testing.TB, bucket string) {
	t.Helper()
	source := r.source.etags(bucket)
	require.Equal(t, source, r.target.etags(bucket), "keys and ETags")
	for key := range source {
		header, digest := r.source.told(bucket, key)
		gotHeader, gotDigest := r.target.told(bucket, key)
		// Garage does not note the type of a checksum that came as a trailer; it does of one that came as a header.
		if kind := "X-Amz-Checksum-Type"; header.Get(kind) == "" && gotHeader.Get(kind) == "FULL_OBJECT" {
			gotHeader.Del(kind)
		}
		require.Equal(t, header, gotHeader, "headers of %q", key)
		require.Equal(t, digest, gotDigest, "data of %q", key)
	}
}

func (r *rig) pass(t testing.TB, bucket string) mover.PassResult {
	t.Helper()
	result, err := r.mover.Pass(t.Context(), bucket)
	require.NoError(t, err)
	return result
}

func (r *rig) verify(t testing.TB, bucket string) mover.VerifyResult {
	t.Helper()
	result, err := r.mover.Verify(t.Context(), bucket)
	require.NoError(t, err)
	return result
}
