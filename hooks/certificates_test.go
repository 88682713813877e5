package main

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	tlscertificate "github.com/deckhouse/module-sdk/common-hooks/tls-certificate"
	"github.com/stretchr/testify/require"
)

func TestCertificateNamesEveryHost(t *testing.T) {
	conf := certificateConf()
	r := onHarness(t, tlscertificate.GenSelfSignedTLSConfig(conf), tlscertificate.GenSelfSignedTLS(conf))
	r.KubeStateSet("")
	r.run()
	pair, err := tls.X509KeyPair([]byte(r.ValuesGet("systemS3.internal.tls.crt").String()), []byte(r.ValuesGet("systemS3.internal.tls.key").String()))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM([]byte(r.ValuesGet("systemS3.internal.tls.ca").String())))
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	require.NoError(t, err)
	for _, host := range []string{
		"s3.d8-system-s3.svc", "bucket.s3.d8-system-s3.svc", "sts.d8-system-s3.svc", "s3-gateway.d8-system-s3.svc",
		"s3.d8-system-s3.svc.cluster.test", "bucket.s3.d8-system-s3.svc.cluster.test", "sts.d8-system-s3.svc.cluster.test",
	} {
		_, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots})
		require.NoError(t, err, host)
	}
}
