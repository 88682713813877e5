package platform

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConfigMapData(t *testing.T) {
	t.Parallel()

	maintained := config{enabled: "true"}.build()
	maintained.Spec.Maintenance = "NoResourceReconciliation"

	cases := map[string]struct {
		reason string
		config *ModuleConfig
		want   map[string]string
	}{
		"none": {
			reason: "without a ModuleConfig the bundle decides: off",
			want:   map[string]string{"systemS3Enabled": "false"},
		},
		"on with settings": {
			reason: "settings go under the module's key",
			config: config{enabled: "true", settings: map[string]any{"storageClass": "fast"}}.build(),
			want:   map[string]string{"systemS3Enabled": "true", "systemS3": "storageClass: fast\n"},
		},
		"off keeps settings": {
			reason: "they count again when it is switched on",
			config: config{enabled: "false", settings: map[string]any{"highAvailability": true}}.build(),
			want:   map[string]string{"systemS3Enabled": "false", "systemS3": "highAvailability: true\n"},
		},
		"empty settings": {
			reason: "no section without settings",
			config: config{enabled: "true", settings: map[string]any{}}.build(),
			want:   map[string]string{"systemS3Enabled": "true"},
		},
		"maintenance": {
			reason: "passed on as it is",
			config: maintained,
			want:   map[string]string{"systemS3Enabled": "true", "systemS3Maintenance": "NoResourceReconciliation"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			data, err := Translation{
				Definition: Definition{Name: "system-s3"}, Config: c.config, Global: map[string]any{"a": 1},
			}.ConfigMapData()
			require.NoError(t, err)

			c.want["global"] = "a: 1\n"
			assert.Equal(t, c.want, data, c.reason)
		})
	}
}

func TestSwitchChangesGlobalSection(t *testing.T) {
	t.Parallel()

	stand := &controller{definition: Definition{Name: "system-s3"}}

	section := func(enabled string) string {
		config := config{enabled: enabled}.build()
		data, err := Translation{
			Definition: stand.definition, Config: config,
			Global: Globals(World{EnabledModules: stand.enabledModules(config)}),
		}.ConfigMapData()
		require.NoError(t, err)

		return data["global"]
	}

	assert.NotEqual(t, section("true"), section("false"),
		"addon-operator does not notice a switch that changes no values")
}

func TestGlobals(t *testing.T) {
	t.Parallel()

	master := map[string]string{controlPlaneRole: ""}
	storage := map[string]string{"node-role.deckhouse.io/system-s3": "", "node-role.deckhouse.io/system": ""}

	values := Globals(World{
		Nodes:        []map[string]string{master, storage, {"other": ""}},
		DefaultClass: "fast", APIVersions: []string{"b/v1/B", "a/v1/A"}, EnabledModules: []string{"x", "a"},
		Settings: map[string]any{"highAvailability": true, "modules": map[string]any{"storageClass": "slow"}},
		Cluster:  ClusterFacts{Domain: "cluster.test", KubernetesVersion: "v1.34.4", DeckhouseVersion: "v1.78.0"},
	})

	discovery, _ := values["discovery"].(map[string]any)
	assert.Equal(t, 1, discovery["clusterMasterCount"])
	assert.Equal(t, false, discovery["clusterControlPlaneIsHighlyAvailable"])
	assert.Equal(t, map[string]any{"systemS3": 1, "system": 1}, discovery["d8SpecificNodeCountByRole"])
	assert.Equal(t, []string{"a/v1/A", "b/v1/B"}, discovery["apiVersions"], "sorted, so that equal clusters give equal values")
	assert.Equal(t, "fast", discovery["defaultStorageClass"])
	assert.Equal(t, "1.34.4", discovery["kubernetesVersion"])
	assert.Equal(t, []string{"a", "x"}, values["enabledModules"])
	assert.Equal(t, true, values["highAvailability"], "the user's word")
	assert.Equal(t, map[string]any{"storageClass": "slow", "placement": map[string]any{}}, values["modules"], "merged, not replaced")
}

func TestGlobalsOfEmptyCluster(t *testing.T) {
	t.Parallel()

	values := Globals(World{})
	discovery, _ := values["discovery"].(map[string]any)

	assert.NotContains(t, discovery, "defaultStorageClass", "removed when there is none")
	assert.NotContains(t, values, "highAvailability", "absent means automatic")
}

func TestGlobalsTwoMasters(t *testing.T) {
	t.Parallel()

	master := map[string]string{controlPlaneRole: ""}
	discovery, _ := Globals(World{Nodes: []map[string]string{master, master}})["discovery"].(map[string]any)

	assert.Equal(t, true, discovery["clusterControlPlaneIsHighlyAvailable"], "more than one is enough for the platform")
}
