package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/sandbox/pki"
)

func TestIssuedIsTrustedAndKept(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	authority, err := pki.Open(folder)
	require.NoError(t, err)

	id := pki.Identity{File: "server", Name: "server", Group: "things", Hosts: []string{"10.1.2.3", "a.example"}}
	require.NoError(t, authority.Issue(id))

	first, err := os.ReadFile(authority.Cert("server"))
	require.NoError(t, err)

	pair, err := tls.LoadX509KeyPair(authority.Cert("server"), authority.Key("server"))
	require.NoError(t, err)

	ca, err := os.ReadFile(authority.CA())
	require.NoError(t, err)

	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(ca))

	for _, host := range id.Hosts {
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host})
		require.NoError(t, err, host)
	}

	assert.Equal(t, []string{"things"}, pair.Leaf.Subject.Organization)

	again, err := pki.Open(folder)
	require.NoError(t, err)
	require.NoError(t, again.Issue(id))

	second, err := os.ReadFile(authority.Cert("server"))
	require.NoError(t, err)
	assert.Equal(t, first, second, "a second run must find what the first one made")
}

func TestHalfWrittenAuthorityIsMadeAnew(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	require.NoError(t, os.WriteFile(folder+"/ca.crt", []byte("cut sho"), 0o600))

	_, err := pki.Open(folder)
	require.NoError(t, err)
}
