package platform

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// allowDisabling is the annotation on a ModuleConfig that confirms one disabling of a protected module.
	allowDisabling = "modules.deckhouse.io/allow-disabling"
	// globalConfig is the name of the ModuleConfig that holds the platform's global settings.
	globalConfig = "global"
	// deckhouseConfig is the name of the ModuleConfig of the platform itself.
	deckhouseConfig = "deckhouse"
)

var (
	moduleResource       = schema.GroupVersionResource{Group: "deckhouse.io", Version: "v1alpha1", Resource: "modules"}
	moduleConfigResource = schema.GroupVersionResource{Group: "deckhouse.io", Version: "v1alpha1", Resource: "moduleconfigs"}

	errNoName = errors.New("the module has no name")
)

// ModuleConfig is the user's word about a module: deckhouse.io/v1alpha1.
type ModuleConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   ModuleConfigSpec   `json:"spec"`
	Status ModuleConfigStatus `json:"status,omitzero"`
}

// ModuleConfigSpec is what the user writes. Enabled is nil when the user leaves it to the bundle.
type ModuleConfigSpec struct {
	Enabled     *bool          `json:"enabled,omitempty"`
	Version     int            `json:"version,omitempty"`
	Settings    map[string]any `json:"settings,omitempty"`
	Source      string         `json:"source,omitempty"`
	Maintenance string         `json:"maintenance,omitempty"`
}

// ModuleConfigStatus is what the platform answers.
type ModuleConfigStatus struct {
	Version string `json:"version,omitempty"`
	Message string `json:"message,omitempty"`
}

// enabled tells whether the module is on under this ModuleConfig; nil means there is none.
func (c *ModuleConfig) enabled(byBundle bool) bool {
	if c == nil || c.Spec.Enabled == nil {
		return byBundle
	}

	return *c.Spec.Enabled
}

// confirmed tells whether the disabling of the module is confirmed on this object.
func (c *ModuleConfig) confirmed() bool {
	if c == nil {
		return false
	}

	_, confirmed := c.Annotations[allowDisabling]

	return confirmed
}

func moduleConfigFrom(object *unstructured.Unstructured) (*ModuleConfig, error) {
	config := &ModuleConfig{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, config); err != nil {
		return nil, fmt.Errorf("read ModuleConfig %s: %w", object.GetName(), err)
	}

	return config, nil
}
