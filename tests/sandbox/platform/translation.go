package platform

import (
	"fmt"
	"strconv"

	"sigs.k8s.io/yaml"
)

// Translation is what addon-operator's configuration is made from.
type Translation struct {
	Definition Definition
	Config     *ModuleConfig  // nil: the user has not written one
	Global     map[string]any // global values
}

// ConfigMapData is addon-operator's configuration for the translation. addon-operator
// looks only at sections whose values changed, so flipping nothing but a module's
// Enabled key would go unnoticed; it never comes to that here, because the global
// values list the modules that are on.
func (t Translation) ConfigMapData() (map[string]string, error) {
	global, err := yaml.Marshal(t.Global)
	if err != nil {
		return nil, fmt.Errorf("write global values: %w", err)
	}

	data := map[string]string{"global": string(global)}
	if err := t.addModule(data); err != nil {
		return nil, err
	}

	return data, nil
}

// addModule adds the keys of the module, as the platform passes a ModuleConfig on:
// settings only when there are any, the switch only when it is set.
func (t Translation) addModule(data map[string]string) error {
	key := t.Definition.ValuesKey()
	data[key+"Enabled"] = strconv.FormatBool(t.Config.enabled(t.Definition.EnabledByBundle()))

	if t.Config == nil {
		return nil
	}

	if t.Config.Spec.Maintenance != "" {
		data[key+"Maintenance"] = t.Config.Spec.Maintenance
	}

	if len(t.Config.Spec.Settings) == 0 {
		return nil
	}

	settings, err := yaml.Marshal(t.Config.Spec.Settings)
	if err != nil {
		return fmt.Errorf("write settings of %s: %w", t.Definition.Name, err)
	}

	data[key] = string(settings)

	return nil
}
