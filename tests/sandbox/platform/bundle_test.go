package platform

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

// write puts files below the folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()

	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), privateDir))
		require.NoError(t, os.WriteFile(path, []byte(text), privateFile))
	}
}

func TestBundle(t *testing.T) {
	t.Parallel()

	checkout := t.TempDir()
	write(t, checkout, map[string]string{
		"module.yaml": "name: system-s3\n", "Chart.yaml": "name: system-s3\n", "templates/a.yaml": "a",
		"openapi/values.yaml": "type: object", "openapi/openapi_test.go": "package openapi", "secret.txt": "no",
	})

	env := Env{Dir: statedir.Dir(t.TempDir()), Checkout: checkout, Registry: "registry.test:5000"}
	env.Options = Options{KeyLifetime: 90e9, RPCTimeout: 10e9}

	dir, err := Bundle(t.Context(), env, map[string]string{"garage": "sha256:1"})
	require.NoError(t, err)

	assert.FileExists(t, filepath.Join(dir, "900-system-s3", "templates", "a.yaml"))
	assert.NoFileExists(t, filepath.Join(dir, "900-system-s3", "secret.txt"), "only what a release carries")
	assert.NoFileExists(t, filepath.Join(dir, "900-system-s3", "openapi", "openapi_test.go"), "no sources")

	data, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	require.NoError(t, err)

	var values struct {
		Global struct {
			ModulesImages struct {
				Digests map[string]map[string]string `json:"digests"`
			} `json:"modulesImages"`
		} `json:"global"`
		SystemS3 struct {
			Internal map[string]int64 `json:"internal"`
			Registry struct {
				Base string `json:"base"`
			} `json:"registry"`
		} `json:"systemS3"`
	}
	require.NoError(t, yaml.Unmarshal(data, &values))
	assert.Equal(t, "sha256:1", values.Global.ModulesImages.Digests["systemS3"]["garage"])
	assert.Equal(t, "registry.test:5000", values.SystemS3.Registry.Base)
	assert.Equal(t, map[string]int64{"rpcTimeoutMsec": 10000, "keyLifetimeSeconds": 90}, values.SystemS3.Internal)
}

func TestFingerprint(t *testing.T) {
	t.Parallel()

	one, two := t.TempDir(), t.TempDir()
	write(t, one, map[string]string{"a/b": "c"})
	write(t, two, map[string]string{"a/b": "c"})

	first, err := fingerprint(one)
	require.NoError(t, err)

	second, err := fingerprint(two)
	require.NoError(t, err)
	assert.Equal(t, first, second, "the same release wherever it lies")

	write(t, two, map[string]string{"a/b": "d"})

	third, err := fingerprint(two)
	require.NoError(t, err)
	assert.NotEqual(t, first, third)

	_, err = fingerprint(filepath.Join(one, "absent"))
	assert.Error(t, err, "nothing is not a release")
}

func TestEnvIsKept(t *testing.T) {
	t.Parallel()

	dir := statedir.Dir(t.TempDir())

	_, err := Load(dir)
	require.ErrorIs(t, err, errNotUp)

	env := Env{Dir: dir, Registry: "registry.test:5000", Options: Options{Modules: []string{"prometheus"}}}
	require.NoError(t, env.save())

	loaded, err := Load(dir)
	require.NoError(t, err)
	assert.Equal(t, env, loaded)
}
