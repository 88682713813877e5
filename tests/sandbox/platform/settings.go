package platform

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// versionKey names the newest version of the settings in a module's schema.
const versionKey = "x-config-version"

// Settings checks what users write into ModuleConfig's spec.settings against the
// module's openapi/config-values.yaml, its x-deckhouse-validations included.
type Settings struct {
	schema  *spec.Schema
	version int
}

// ReadSettings reads the schema of the module in dir. A module without one accepts no setting at all.
func ReadSettings(dir string) (Settings, error) {
	data, err := os.ReadFile(filepath.Join(dir, "openapi", "config-values.yaml")) //nolint:gosec // The caller names the module.
	if errors.Is(err, os.ErrNotExist) {
		data, err = []byte("type: object"), nil
	}

	if err != nil {
		return Settings{}, fmt.Errorf("read settings schema: %w", err)
	}

	return ParseSettings(data)
}

// ParseSettings reads a schema from YAML.
func ParseSettings(data []byte) (Settings, error) {
	schema := &spec.Schema{}
	if err := yaml.Unmarshal(data, schema); err != nil {
		return Settings{}, fmt.Errorf("parse settings schema: %w", err)
	}

	closeObjects(schema)

	version := 1
	if number, ok := schema.Extensions[versionKey].(float64); ok {
		version = int(number)
	}

	return Settings{schema: schema, version: version}, nil
}

// Version is the newest version of the settings' schema.
func (s Settings) Version() int { return s.version }

// Check refuses settings that the module does not accept; the error names each
// offending field. Old is the object before the write, nil on creation: rules about
// transitions apply only when there is one.
func (s Settings) Check(change Change) error {
	config := change.New
	if config == nil || len(config.Spec.Settings) == 0 {
		return nil
	}

	if err := s.checkVersion(config.Spec.Version); err != nil {
		return err
	}

	if err := s.checkSchema(config.Spec.Settings); err != nil {
		return err
	}

	var old any
	if change.Old != nil && len(change.Old.Spec.Settings) > 0 {
		old = change.Old.Spec.Settings
	}

	return checkRules(s.schema, rules{path: "spec.settings", self: config.Spec.Settings, old: old})
}

// checkVersion accepts only the newest version: the stand-in has no conversions.
func (s Settings) checkVersion(version int) error {
	switch version {
	case s.version:
		return nil
	case 0:
		return &RefusalError{Reason: fmt.Sprintf("spec.version is required with spec.settings; the newest is %d", s.version)}
	default:
		return &RefusalError{Reason: fmt.Sprintf("spec.version: unknown version %d of the settings; the newest is %d", version, s.version)}
	}
}

func (s Settings) checkSchema(settings map[string]any) error {
	result := validate.NewSchemaValidator(s.schema, nil, "spec.settings", strfmt.Default).Validate(settings)
	if result.IsValid() {
		return nil
	}

	return &RefusalError{Reason: errors.Join(result.Errors...).Error()}
}

// closeObjects refuses keys that the schema does not declare, at every level where it
// says nothing itself: addon-operator does the same before it checks values.
func closeObjects(schema *spec.Schema) {
	if schema == nil {
		return
	}

	if schema.AdditionalProperties == nil && schema.Type.Contains("object") {
		schema.AdditionalProperties = &spec.SchemaOrBool{Allows: false}
	}

	for name, property := range schema.Properties {
		closeObjects(&property)
		schema.Properties[name] = property
	}

	if schema.Items != nil {
		closeObjects(schema.Items.Schema)
	}
}
