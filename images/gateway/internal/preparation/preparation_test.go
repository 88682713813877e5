package preparation

import (
	"crypto/ed25519"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
)

// volume is a node's volume with everything that prepare reads.
type volume struct {
	t *testing.T
	Config
}

const testOrdinal = 1

func newVolume(t *testing.T) volume {
	t.Helper()
	root := t.TempDir()
	v := volume{t, Config{
		MetadataDir: filepath.Join(root, "garage", "meta"),
		RunDir:      filepath.Join(root, "run"),
		PlaneDir:    filepath.Join(root, "plane"),
		PodName:     names.GaragePod("a", testOrdinal),
		Epoch:       1,
		ConfigFile:  filepath.Join(root, "config", "garage.toml"),
	}}
	require.NoError(t, os.MkdirAll(filepath.Dir(v.ConfigFile), 0o700))
	require.NoError(t, os.WriteFile(v.ConfigFile, []byte("replication_factor = 1\n"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Dir(v.MetadataDir), 0o700))
	require.NoError(t, os.MkdirAll(v.PlaneDir, 0o700))
	v.secret(names.NodeKeyKey(testOrdinal), string(key(1)))
	v.secret(names.RPCSecretKey, strings.Repeat("ab", 32)+"\n")
	v.secret(names.AdminTokenKey, "admin-token\n")
	v.secret(names.MetricsTokenKey, "metrics-token")
	return v
}

func key(seed byte) nodeKey {
	return nodeKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), ed25519.SeedSize))))
}

func (v volume) secret(name, data string) {
	v.t.Helper()
	require.NoError(v.t, os.WriteFile(filepath.Join(v.PlaneDir, name), []byte(data), 0o600))
}

// meta writes a file of Garage's.
func (v volume) meta(name, data string) {
	v.t.Helper()
	require.NoError(v.t, os.MkdirAll(v.MetadataDir, 0o700))
	require.NoError(v.t, os.WriteFile(filepath.Join(v.MetadataDir, name), []byte(data), 0o600))
}

func (v volume) epoch(text string) {
	v.t.Helper()
	require.NoError(v.t, os.WriteFile(v.epochPath(), []byte(text), 0o600))
}

// files are the contents below the volume and the run directory, by path.
func (v volume) files() map[string]string {
	v.t.Helper()
	found := map[string]string{}
	for _, dir := range []string{filepath.Dir(v.MetadataDir), v.RunDir} {
		require.NoError(v.t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || entry.Name() == names.ContentFile { // its name is drawn by chance
				return err
			}
			data, err := os.ReadFile(path)
			found[strings.TrimPrefix(path, filepath.Dir(filepath.Dir(v.MetadataDir))+"/")] = string(data)
			return err
		}))
	}
	return found
}

func (v volume) prepared(epoch int) map[string]string {
	raw, err := hex.DecodeString(strings.Repeat("ab", 32))
	require.NoError(v.t, err)
	return map[string]string{
		"garage/epoch":             strconv.Itoa(epoch) + "\n",
		"garage/meta/node_key":     string(key(1)),
		"garage/meta/node_key.pub": string(key(1).public()),
		"run/rpc_secret":           access.RPCSecret(raw, epoch),
		"run/admin_token":          "admin-token",
		"run/metrics_token":        "metrics-token",
		"run/garage.toml":          "replication_factor = 1\n",
	}
}

func with(files map[string]string, more ...string) map[string]string {
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

func TestAFreshVolumeGetsIdentityAndSecrets(t *testing.T) {
	v := newVolume(t)
	require.NoError(t, Run(v.Config))
	require.Equal(t, v.prepared(1), v.files())
	for _, dir := range []string{v.MetadataDir, v.RunDir} {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, entry := range entries {
			info, err := entry.Info()
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "Garage refuses secrets that others could read: %s", entry.Name())
		}
	}
}

func TestPreparingAgainChangesNothing(t *testing.T) {
	v := newVolume(t)
	require.NoError(t, Run(v.Config))
	v.meta("cluster_layout", "layout of epoch 1")
	v.meta("peer_list", "peers of epoch 1")
	before := v.files()
	require.NoError(t, Run(v.Config))
	require.Equal(t, before, v.files())
}

func TestAHigherEpochMovesTheLayoutAside(t *testing.T) {
	v := newVolume(t)
	require.NoError(t, Run(v.Config))
	v.meta("cluster_layout", "layout of epoch 1")
	v.meta("peer_list", "peers of epoch 1")
	v.meta("data_layout", "stays")

	v.Epoch = 2
	require.NoError(t, Run(v.Config))
	require.Equal(t, with(v.prepared(2),
		"garage/meta/cluster_layout.epoch-1", "layout of epoch 1",
		"garage/meta/peer_list.epoch-1", "peers of epoch 1",
		"garage/meta/data_layout", "stays"), v.files())
}

func TestWhatWasKeptIsNeverWrittenOver(t *testing.T) {
	v := newVolume(t)
	v.meta("cluster_layout", "second")
	v.meta("cluster_layout.epoch-1", "first")
	v.epoch("1")
	v.Epoch = 2
	require.NoError(t, Run(v.Config))
	require.Equal(t, with(v.prepared(2),
		"garage/meta/cluster_layout.epoch-1", "first",
		"garage/meta/cluster_layout.epoch-1.2", "second"), v.files())
}

func TestARunKilledBetweenAnyTwoStepsIsCompletedByTheNext(t *testing.T) {
	start := func(t *testing.T) volume {
		t.Helper()
		v := newVolume(t)
		require.NoError(t, Run(v.Config))
		v.meta("cluster_layout", "layout of epoch 1")
		v.meta("peer_list", "peers of epoch 1")
		v.Epoch = 2
		return v
	}
	want := with(start(t).prepared(2),
		"garage/meta/cluster_layout.epoch-1", "layout of epoch 1",
		"garage/meta/peer_list.epoch-1", "peers of epoch 1")
	all, err := start(t).steps()
	require.NoError(t, err)
	for done := range len(all) + 1 {
		t.Run("after "+strconv.Itoa(done)+" steps", func(t *testing.T) {
			v := start(t)
			steps, err := v.steps()
			require.NoError(t, err)
			for _, s := range steps[:done] {
				require.NoError(t, s.run(), s.name)
			}
			require.NoError(t, os.RemoveAll(v.RunDir), "the memory is gone with the Pod")
			require.NoError(t, Run(v.Config))
			require.Equal(t, want, v.files())
		})
	}
}

func TestAHalfWrittenFileIsWrittenOver(t *testing.T) {
	v := newVolume(t)
	v.meta("node_key"+temporary, "half")
	require.NoError(t, os.Chmod(filepath.Join(v.MetadataDir, "node_key"+temporary), 0o400))
	require.NoError(t, Run(v.Config))
	require.Equal(t, v.prepared(1), v.files())
}

func TestATornNodeKeyNamesNobodyAndIsWrittenAgain(t *testing.T) {
	v := newVolume(t)
	v.meta("node_key", string(key(1)[:10]))
	require.NoError(t, Run(v.Config))
	require.Equal(t, v.prepared(1), v.files())
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		reason string
		spoil  func(*volume)
		want   string
	}{
		"a volume of a higher epoch": {
			"a node that goes back would bring an old layout among its peers",
			func(v *volume) { v.epoch("3\n"); v.Epoch = 2 }, "already served epoch 3, higher than the configured 2",
		},
		"a damaged record of the epoch": {
			"what the volume has seen is unknown then, which is not the same as nothing",
			func(v *volume) { v.epoch("\x00\x00") }, "record of the epoch",
		},
		"a volume of another node": {
			"two nodes would swap their places in the layout",
			func(v *volume) { v.meta("node_key", string(key(2))) }, "belongs to another Garage node: it carries the identity " + key(2).id(),
		},
		"no epoch":                    {"epochs start at 1", func(v *volume) { v.Epoch = 0 }, "epochs start at 1"},
		"a Pod name without a number": {"the ordinal picks the identity", func(v *volume) { v.PodName = "garage" }, "does not end in an ordinal"},
		"no node key for the ordinal": {"only the plane's Secret names the node", func(v *volume) { v.PodName = "garage-a-7" }, "node-key-7"},
		"halves of two keys": {
			"Garage would start under an id that it cannot prove",
			func(v *volume) { v.secret(names.NodeKeyKey(testOrdinal), string(key(1)[:32])+string(key(2).public())) },
			"does not belong to its seed",
		},
		"a short node key":   {"", func(v *volume) { v.secret(names.NodeKeyKey(testOrdinal), "short") }, "64 bytes"},
		"a bad RPC secret":   {"the error must not show the secret", func(v *volume) { v.secret(names.RPCSecretKey, "secret") }, "not 64 hexadecimal characters"},
		"no admin token":     {"Garage would run without a token", func(v *volume) { v.secret(names.AdminTokenKey, "\n") }, "empty token"},
		"a missing RPC file": {"", func(v *volume) { require.NoError(v.t, os.Remove(filepath.Join(v.PlaneDir, names.RPCSecretKey))) }, names.RPCSecretKey},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t)
			c.spoil(&v)
			require.NoError(t, os.MkdirAll(v.RunDir, 0o700))
			before := v.files()
			require.ErrorContains(t, Run(v.Config), c.want, c.reason)
			require.Equal(t, before, v.files(), "a refusal changes nothing")
		})
	}
}
