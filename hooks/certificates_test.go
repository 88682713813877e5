package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// servingCertificate is what the hook published: the certificate and the pool with its CA.
func servingCertificate(t *testing.T, r running) (*x509.Certificate, *x509.CertPool) {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(r.ValuesGet(tlsPath+".crt").String()), []byte(r.ValuesGet(tlsPath+".key").String()))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM([]byte(r.ValuesGet(tlsPath+".ca").String())))
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	require.NoError(t, err)
	return leaf, roots
}

// certificateSecrets are the Secrets that the chart would print.
func certificateSecrets(r running) string {
	value := func(key string) string {
		return base64.StdEncoding.EncodeToString([]byte(r.ValuesGet(tlsPath + "." + key).String()))
	}
	return state(
		fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: ca, namespace: d8-system-s3}\ndata: {ca.crt: %s, ca.key: %s}", value("ca"), value("caKey")),
		fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: tls, namespace: d8-system-s3}\ndata: {ca.crt: %s, tls.crt: %s, tls.key: %s}", value("ca"), value("crt"), value("key")),
	)
}

func TestCertificateNamesEveryHost(t *testing.T) {
	r := onHarness(t, certificatesConfig(), issueCertificates)
	r.KubeStateSet("")
	r.run()
	leaf, roots := servingCertificate(t, r)
	for _, host := range []string{
		"s3.d8-system-s3.svc", "bucket.s3.d8-system-s3.svc", "sts.d8-system-s3.svc", "s3-gateway.d8-system-s3.svc", "page.d8-system-s3.svc",
		"s3.d8-system-s3.svc.cluster.test", "bucket.s3.d8-system-s3.svc.cluster.test", "sts.d8-system-s3.svc.cluster.test",
	} {
		_, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots})
		require.NoError(t, err, host)
	}
	require.NotEqual(t, leaf.Subject.String(), leaf.Issuer.String(), "OpenSSL takes equal names for a self-signed certificate and refuses it")
}

func TestCertificatesAreReadBack(t *testing.T) {
	r := onHarness(t, certificatesConfig(), issueCertificates)
	r.KubeStateSet("")
	r.run()
	first := r.ValuesGet(tlsPath).String()
	r.KubeStateSet(certificateSecrets(r))
	r.ValuesDelete(tlsPath)
	r.run()
	require.JSONEq(t, first, r.ValuesGet(tlsPath).String(), "after a restart of Deckhouse the Secrets are the memory")
}

func TestCAOutlivesItsCertificates(t *testing.T) {
	r := onHarness(t, certificatesConfig(), issueCertificates)
	r.KubeStateSet("")
	r.run()
	old, _ := servingCertificate(t, r)
	ca := r.ValuesGet(tlsPath + ".ca").String()
	r.KubeStateSet(certificateSecrets(r))

	t.Run("the end is near", func(t *testing.T) {
		r.DependencyContainer().SetClock(clockwork.NewFakeClockAt(old.NotAfter.Add(-24 * time.Hour)))
		r.run()
		renewed, _ := servingCertificate(t, r)
		require.NotEqual(t, old.SerialNumber, renewed.SerialNumber)
		require.Equal(t, ca, r.ValuesGet(tlsPath+".ca").String(), "clients go on trusting the same CA")
	})
	t.Run("a host is new", func(t *testing.T) {
		r.DependencyContainer().SetClock(clockwork.NewFakeClockAt(time.Now()))
		r.ValuesSet("global.discovery.clusterDomain", "other.test")
		r.run()
		renewed, _ := servingCertificate(t, r)
		require.Contains(t, renewed.DNSNames, "s3.d8-system-s3.svc.other.test")
		require.Equal(t, ca, r.ValuesGet(tlsPath+".ca").String(), "clients go on trusting the same CA")
	})
}

func TestBrokenCAIsReplacedOnlyWhenNothingCanBeServed(t *testing.T) {
	const broken = "apiVersion: v1\nkind: Secret\nmetadata: {name: ca, namespace: d8-system-s3}\ndata: {ca.crt: bm90LXF1b3RlZA==}"
	r := onHarness(t, certificatesConfig(), issueCertificates)
	r.KubeStateSet("")
	r.run()
	old, _ := servingCertificate(t, r)
	ca := r.ValuesGet(tlsPath + ".ca").String()
	served := strings.SplitN(certificateSecrets(r), "---\n", 2)[1]

	r.KubeStateSet(state(broken, served))
	r.run()
	kept, _ := servingCertificate(t, r)
	require.Equal(t, old.SerialNumber, kept.SerialNumber, "clients are served on")
	require.Equal(t, ca, r.ValuesGet(tlsPath+".ca").String(), "and trust what they trusted")
	require.Contains(t, r.LoggerOutput().String(), "secret d8-system-s3/ca holds no usable CA")
	require.NotContains(t, r.LoggerOutput().String(), "not-quoted")

	r.DependencyContainer().SetClock(clockwork.NewFakeClockAt(old.NotAfter.Add(time.Hour)))
	r.run()
	require.NotEqual(t, ca, r.ValuesGet(tlsPath+".ca").String(), "nothing could be served any more")
}
