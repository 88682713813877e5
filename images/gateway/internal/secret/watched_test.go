package secret

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
)

func ringJSON(t *testing.T, letter string) []byte {
	t.Helper()
	ring := access.Ring{}.Rotate(time.Unix(1, 0), []byte(strings.Repeat(letter, 32)))
	data, err := ring.Marshal()
	require.NoError(t, err)
	return data
}

func TestAChangedRingReplacesTheOneInUseAndADamagedOneDoesNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), names.KeyRingKey)
	write := func(data []byte) { require.NoError(t, os.WriteFile(path, data, 0o600)) }
	core, logs := observer.New(zap.InfoLevel)
	write(ringJSON(t, "a"))
	ring, err := OpenRing(path, zap.New(core))
	require.NoError(t, err)
	secret := func() string { return string(ring.Current().Keys[0].Secret[:1]) }
	require.Equal(t, "a", secret())

	write([]byte("{damaged"))
	ring.reload()
	ring.reload()
	require.Equal(t, "a", secret(), "keys in flight go on working")
	require.Equal(t, 1, logs.Len(), "trouble is told once")
	require.NotContains(t, logs.All()[0].ContextMap()["error"], "damaged", "the content is secret")

	require.NoError(t, os.Remove(path))
	ring.reload()
	require.Equal(t, "a", secret())

	write(ringJSON(t, "b"))
	ring.reload()
	require.Equal(t, "b", secret())
	require.Equal(t, 3, logs.Len())
	ring.reload()
	require.Equal(t, 3, logs.Len(), "nothing has changed")
}

func TestAGatewayDoesNotStartWithoutItsSecrets(t *testing.T) {
	dir := t.TempDir()
	_, err := OpenRing(filepath.Join(dir, "absent"), zap.NewNop())
	require.ErrorContains(t, err, "key ring")
	_, err = OpenCertificate(filepath.Join(dir, "absent"), filepath.Join(dir, "absent"), zap.NewNop())
	require.ErrorContains(t, err, "serving certificate")

	cases := map[string]struct{ seed, token, metrics, want string }{
		"a short seed":           {"abcd", "token", "token", "not 64 hexadecimal characters"},
		"a seed that is none":    {strings.Repeat("zz", 32), "token", "token", "not 64 hexadecimal characters"},
		"an empty token":         {strings.Repeat("ab", 32), "\n", "token", "admin-token: it is empty"},
		"an empty metrics token": {strings.Repeat("ab", 32), "token", "", "metrics-token: it is empty"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, names.SeedKey), []byte(c.seed), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, names.AdminTokenKey), []byte(c.token), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, names.MetricsTokenKey), []byte(c.metrics), 0o600))
			_, err := ReadPlane(dir)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), c.seed, "the seed is secret")
		})
	}
	_, err = ReadPlane(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}
