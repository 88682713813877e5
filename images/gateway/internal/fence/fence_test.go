package fence_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/gateway/internal/fence"
)

func TestAFenceStands(t *testing.T) {
	dir := t.TempDir()
	reopen := func() *fence.Fence {
		f, err := fence.Open(dir)
		require.NoError(t, err)
		return f
	}
	f := reopen()
	require.Equal(t, fence.State{}, f.State())
	require.Error(t, f.Set("http://10.0.0.1"), "not without TLS")
	require.Equal(t, fence.State{}, reopen().State())
	require.NoError(t, f.Set(""))
	require.Equal(t, fence.State{Fenced: true}, reopen().State(), "a restart does not open it")
	require.NoError(t, f.Set("https://10.0.0.1:443"))
	require.ErrorIs(t, f.Set(""), fence.ErrBack)
	require.NoError(t, f.Set("https://10.0.0.2:443"))
	require.Equal(t, fence.State{Fenced: true, To: "https://10.0.0.2:443"}, reopen().State())

	require.NoError(t, os.WriteFile(filepath.Join(dir, "fence"), []byte("{"), 0o600))
	_, err := fence.Open(dir)
	require.Error(t, err, "what cannot be read is not taken for no fence")
}
