package platform

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCheckEnabling(t *testing.T) {
	t.Parallel()

	facts := ClusterFacts{DeckhouseVersion: "v1.78.0", KubernetesVersion: "v1.34.4"}
	on := Change{New: config{enabled: "true"}.build()}

	cases := map[string]struct {
		reason  string
		def     Definition
		change  Change
		cluster Suitability
		want    string
	}{
		"plain":    {reason: "nothing is required", change: on, cluster: Suitability{Facts: facts}},
		"disabled": {reason: "only enabling is checked", def: Definition{Stage: experimental}, change: Change{New: config{}.build()}},
		"already on": {
			reason: "a running module is not asked about again", def: Definition{Stage: experimental},
			change: Change{Old: config{enabled: "true"}.build(), New: config{enabled: "true"}.build()},
		},
		"experimental": {
			reason: "the platform must allow it", def: Definition{Stage: experimental}, change: on,
			cluster: Suitability{Facts: facts}, want: "allowExperimentalModules",
		},
		"experimental allowed": {
			reason: "it does", def: Definition{Stage: experimental}, change: on,
			cluster: Suitability{Facts: facts, Experimental: true},
		},
		"old deckhouse": {
			reason: "the version is named", change: on, cluster: Suitability{Facts: facts},
			def: Definition{Requirements: map[string]any{"deckhouse": ">= 1.79"}}, want: "deckhouse >= 1.79",
		},
		"development build": {
			reason: "it has no number to compare", change: on,
			def:     Definition{Requirements: map[string]any{"deckhouse": ">= 1.79"}},
			cluster: Suitability{Facts: ClusterFacts{DeckhouseVersion: "dev"}},
		},
		"kubernetes": {
			reason: "a fitting version", change: on, cluster: Suitability{Facts: facts},
			def: Definition{Requirements: map[string]any{"kubernetes": ">= 1.30"}},
		},
		"missing module": {
			reason: "it is named", change: on, cluster: Suitability{Facts: facts},
			def: Definition{Requirements: map[string]any{"modules": map[string]any{"prometheus": ">= 0.0.0"}}}, want: "prometheus",
		},
		"optional module": {
			reason: "it may be absent", change: on, cluster: Suitability{Facts: facts},
			def: Definition{Requirements: map[string]any{"modules": map[string]any{"prometheus": ">= 0.0.0 !optional"}}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := CheckEnabling(c.def, c.change, c.cluster)
			if c.want == "" {
				assert.NoError(t, err, c.reason)
				return
			}

			assert.ErrorContains(t, err, c.want, c.reason)
		})
	}
}
