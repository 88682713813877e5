package bench

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/names"
)

const certificateLife = 24 * time.Hour

// certificate is one that signs itself, in the form of the Secret tls.
type certificate struct {
	dir  string
	pool *x509.CertPool
}

func newCertificate(t testing.TB) certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certificateLife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		DNSNames: []string{names.S3Host, "*." + names.S3Host}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	c := certificate{dir: t.TempDir(), pool: x509.NewCertPool()}
	c.pool.AddCert(parsed)
	for name, block := range map[string]*pem.Block{
		names.CAKey: {Type: "CERTIFICATE", Bytes: der},
		"tls.crt":   {Type: "CERTIFICATE", Bytes: der},
		"tls.key":   {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(c.dir, name), pem.EncodeToMemory(block), 0o600))
	}
	return c
}

func (c certificate) config() *tls.Config {
	return &tls.Config{RootCAs: c.pool, MinVersion: tls.VersionTLS12}
}
