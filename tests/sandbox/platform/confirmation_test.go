package platform

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// config builds a ModuleConfig for a test; the zero one leaves everything to the bundle.
type config struct {
	enabled, confirmed string
	settings           map[string]any
	version            int
}

func (c config) build() *ModuleConfig {
	out := &ModuleConfig{ObjectMeta: metav1.ObjectMeta{Name: "system-s3"}}
	out.Spec.Settings, out.Spec.Version = c.settings, c.version

	if c.enabled != "" {
		enabled := c.enabled == "true"
		out.Spec.Enabled = &enabled
	}

	if c.confirmed != "" {
		out.Annotations = map[string]string{allowDisabling: c.confirmed}
	}

	return out
}

func protected(message string) Definition {
	return Definition{Name: "system-s3", Disable: Disable{
		Confirmation: true, Messages: map[string]string{"en": message, "ru": "нет"},
	}}
}

func TestConfirmDisabling(t *testing.T) {
	t.Parallel()

	on, off, unset := config{enabled: "true"}.build(), config{enabled: "false"}.build(), config{}.build()
	const text = "The store stops. To confirm it, set the annotation modules.deckhouse.io/allow-disabling=true on ModuleConfig system-s3."

	cases := map[string]struct {
		reason string
		change Change
		want   string
	}{
		"switched off": {
			reason: "the module runs and would not", change: Change{Old: on, New: off}, want: text,
		},
		"switch removed": {
			reason: "without the switch the bundle decides, and it does not run the module",
			change: Change{Old: on, New: unset}, want: text,
		},
		"deleted": {
			reason: "an enabled ModuleConfig may not disappear", change: Change{Old: on}, want: text,
		},
		"deleted while off": {
			reason: "nothing stops", change: Change{Old: off},
		},
		"created switched off": {
			reason: "it did not run before", change: Change{New: off},
		},
		"switched on": {
			reason: "switching on needs no confirmation", change: Change{Old: off, New: on},
		},
		"confirmed before": {
			reason: "the annotation on the old object counts",
			change: Change{Old: config{enabled: "true", confirmed: "true"}.build(), New: off},
		},
		"confirmed in the same write": {
			reason: "one patch may annotate and disable",
			change: Change{Old: on, New: config{enabled: "false", confirmed: "true"}.build()},
		},
		"confirmed and deleted": {
			reason: "the annotation allows the deletion too",
			change: Change{Old: config{enabled: "true", confirmed: "true"}.build()},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := ConfirmDisabling(protected("The store stops"), c.change)
			if c.want == "" {
				assert.NoError(t, err, c.reason)
				return
			}

			assert.EqualError(t, err, c.want, c.reason)
		})
	}
}

func TestConfirmDisablingOfUnprotectedModule(t *testing.T) {
	t.Parallel()

	change := Change{Old: config{enabled: "true"}.build()}
	assert.NoError(t, ConfirmDisabling(Definition{Name: "system-s3"}, change), "nobody asked for a confirmation")
}

func TestConfirmDisablingOfModuleInBundle(t *testing.T) {
	t.Parallel()

	def := protected("The store stops.")
	def.Access.Editions = map[string]Edition{"_default": {EnabledInBundles: []string{"Default"}}}

	off := Change{New: config{enabled: "false"}.build()}
	assert.ErrorContains(t, ConfirmDisabling(def, off), "The store stops.", "creating a ModuleConfig stops what the bundle runs")

	left := Change{Old: config{enabled: "true"}.build(), New: config{}.build()}
	assert.NoError(t, ConfirmDisabling(def, left), "the bundle keeps it running")
}
