package platform

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// defaultWeight places the module among others when module.yaml names no weight;
// the platform gives modules from outside its own tree 900.
const defaultWeight = 900

// Definition is the part of module.yaml that the stand-ins act on.
type Definition struct {
	Name         string            `json:"name"`
	Weight       int               `json:"weight"`
	Stage        string            `json:"stage"`
	Namespace    string            `json:"namespace"`
	Subsystems   []string          `json:"subsystems"`
	Descriptions map[string]string `json:"descriptions"`
	Requirements map[string]any    `json:"requirements"`
	Disable      Disable           `json:"disable"`
	Access       struct {
		Editions map[string]Edition `json:"editions"`
	} `json:"accessibility"`
}

// Edition is the module's place in one edition of the platform.
type Edition struct {
	EnabledInBundles []string `json:"enabledInBundles"`
}

// Disable is the module's protection from being switched off by mistake.
type Disable struct {
	Confirmation bool              `json:"confirmation"`
	Message      string            `json:"message"`
	Messages     map[string]string `json:"messages"`
}

// Text is what the module says to someone about to disable it: the English message
// of the newer form, else the single one of the older form.
func (d Disable) Text() string {
	if text := d.Messages["en"]; text != "" {
		return text
	}

	return d.Message
}

// EnabledByBundle tells whether the Default bundle switches the module on without a ModuleConfig.
func (d Definition) EnabledByBundle() bool {
	for _, edition := range d.Access.Editions {
		if slices.Contains(edition.EnabledInBundles, "Default") {
			return true
		}
	}

	return false
}

// ValuesKey is the module's key in values: its name in lower camel case.
func (d Definition) ValuesKey() string { return camel(d.Name) }

// Folder is the module's folder in the modules directory: weight and name.
func (d Definition) Folder() string {
	weight := d.Weight
	if weight == 0 {
		weight = defaultWeight
	}

	return fmt.Sprintf("%03d-%s", weight, d.Name)
}

// ReadDefinition reads module.yaml of the module in dir.
func ReadDefinition(dir string) (Definition, error) {
	data, err := os.ReadFile(filepath.Join(dir, "module.yaml")) //nolint:gosec // The caller names the module.
	if err != nil {
		return Definition{}, fmt.Errorf("read module definition: %w", err)
	}

	var def Definition
	if err := yaml.Unmarshal(data, &def); err != nil {
		return Definition{}, fmt.Errorf("parse module.yaml: %w", err)
	}

	if def.Name == "" {
		return Definition{}, fmt.Errorf("parse module.yaml: %w", errNoName)
	}

	return def, nil
}

// camel turns kebab-case into lowerCamelCase.
func camel(name string) string {
	parts := strings.Split(name, "-")
	for i, part := range parts[1:] {
		if part != "" {
			parts[i+1] = strings.ToUpper(part[:1]) + part[1:]
		}
	}

	return strings.Join(parts, "")
}
