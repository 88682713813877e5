package platform

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const settingsSchema = `
type: object
x-deckhouse-validations:
  - expression: "!has(self.replicas) || !has(self.limit) || self.replicas <= self.limit"
    message: replicas must not exceed limit
properties:
  highAvailability: {type: boolean}
  storageClass: {type: string, minLength: 1}
  replicas: {type: integer, minimum: 1}
  limit: {type: integer}
  nested:
    type: object
    x-deckhouse-validations:
      - {expression: "self.name == oldSelf.name", message: name cannot change}
      - {expression: "self.absent == 1", message: never asked}
    properties:
      name: {type: string}
`

func TestSettingsCheck(t *testing.T) {
	t.Parallel()

	settings, err := ParseSettings([]byte(settingsSchema))
	require.NoError(t, err)

	cases := map[string]struct {
		reason   string
		old, new map[string]any
		version  int
		want     string
	}{
		"good":    {reason: "all as declared", new: map[string]any{"highAvailability": true, "storageClass": "fast"}, version: 1},
		"nothing": {reason: "no settings need no version", new: nil},
		"wrong type": {
			reason: "the error names the field", version: 1,
			new: map[string]any{"highAvailability": "yes"}, want: "spec.settings.highAvailability",
		},
		"unknown key": {
			reason: "undeclared keys are refused by name", version: 1,
			new: map[string]any{"highAvailabilty": true}, want: "highAvailabilty",
		},
		"unknown key below": {
			reason: "at every level", version: 1,
			new: map[string]any{"nested": map[string]any{"title": "x"}}, want: "title",
		},
		"empty class": {
			reason: "a string has a least length", version: 1,
			new: map[string]any{"storageClass": ""}, want: "spec.settings.storageClass",
		},
		"no version": {
			reason: "settings need the version of their schema",
			new:    map[string]any{"highAvailability": true}, want: "spec.version",
		},
		"future version": {
			reason: "the module does not know it", version: 7,
			new: map[string]any{"highAvailability": true}, want: "spec.version",
		},
		"rule": {
			reason: "rules of the platform are checked", version: 1,
			new: map[string]any{"replicas": int64(3), "limit": int64(2)}, want: "replicas must not exceed limit",
		},
		"transition": {
			reason: "an old value is compared with", version: 1,
			old: map[string]any{"nested": map[string]any{"name": "a"}},
			new: map[string]any{"nested": map[string]any{"name": "b"}}, want: "spec.settings.nested: name cannot change",
		},
		"transition without old value": {
			reason: "a rule about oldSelf waits for one", version: 1,
			new: map[string]any{"nested": map[string]any{"name": "b"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			change := Change{New: config{settings: c.new, version: c.version}.build()}
			if c.old != nil {
				change.Old = config{settings: c.old, version: 1}.build()
			}

			err := settings.Check(change)
			if c.want == "" {
				assert.NoError(t, err, c.reason)
				return
			}

			assert.ErrorContains(t, err, c.want, c.reason)
		})
	}
}

func TestSettingsVersionFromSchema(t *testing.T) {
	t.Parallel()

	settings, err := ParseSettings([]byte("type: object\nx-config-version: 3\n"))
	require.NoError(t, err)
	assert.Equal(t, 3, settings.Version())
}

func TestSettingsBadRule(t *testing.T) {
	t.Parallel()

	settings, err := ParseSettings([]byte("type: object\nx-deckhouse-validations: [{message: lonely}]\nproperties: {a: {type: string}}\n"))
	require.NoError(t, err)

	err = settings.Check(Change{New: config{settings: map[string]any{"a": "b"}, version: 1}.build()})
	assert.ErrorIs(t, err, errBadRule, "a rule without an expression is the module's mistake")
}
