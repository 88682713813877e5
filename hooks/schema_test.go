package main

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// schema judges values as the platform does: what is not declared is refused.
type schema struct{ *spec.Schema }

func (s schema) check(data []byte) error {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return err
	}
	return errors.Join(validate.NewSchemaValidator(s.Schema, nil, "systemS3", strfmt.Default).Validate(value).Errors...)
}

func settingsSchema(t *testing.T) schema {
	t.Helper()
	return closed(loadSchema(t, "../openapi/config-values.yaml"))
}

// valuesSchema extends the settings, as x-extend says.
func valuesSchema(t *testing.T) schema {
	t.Helper()
	s := loadSchema(t, "../openapi/values.yaml")
	for name, property := range loadSchema(t, "../openapi/config-values.yaml").Properties {
		s.Properties[name] = property
	}
	return closed(s)
}

func loadSchema(t *testing.T, path string) *spec.Schema {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	converted, err := yaml.YAMLToJSON(data)
	require.NoError(t, err)
	var s spec.Schema
	require.NoError(t, json.Unmarshal(converted, &s))
	return &s
}

// closed refuses undeclared properties wherever the schema does not speak of them.
func closed(s *spec.Schema) schema {
	for name, property := range s.Properties {
		s.Properties[name] = *closed(&property).Schema
	}
	if s.Items != nil && s.Items.Schema != nil {
		s.Items.Schema = closed(s.Items.Schema).Schema
	}
	switch {
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		s.AdditionalProperties.Schema = closed(s.AdditionalProperties.Schema).Schema
	case s.AdditionalProperties == nil && len(s.Properties) > 0:
		s.AdditionalProperties = &spec.SchemaOrBool{}
	}
	return schema{s}
}

// settingsCases is openapi/openapi-case-tests.yaml. A bad case names the field that the refusal must name.
type settingsCases struct {
	Positive struct {
		ConfigValues []map[string]any `json:"configValues"`
	} `json:"positive"`
	Negative struct {
		ConfigValues []map[string]any `json:"configValues"`
	} `json:"negative"`
}

func TestSettings(t *testing.T) {
	data, err := os.ReadFile("../openapi/openapi-case-tests.yaml")
	require.NoError(t, err)
	var cases settingsCases
	require.NoError(t, yaml.UnmarshalStrict(data, &cases))
	require.NotEmpty(t, cases.Positive.ConfigValues)
	require.NotEmpty(t, cases.Negative.ConfigValues)
	for _, settings := range cases.Positive.ConfigValues {
		require.NoError(t, settingsSchema(t).check(asJSON(t, settings)), "%v", settings)
	}
	for _, settings := range cases.Negative.ConfigValues {
		require.Len(t, settings, 1, "one bad field a case")
		for field := range settings {
			require.ErrorContains(t, settingsSchema(t).check(asJSON(t, settings)), field, "%v", settings)
		}
	}
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return data
}

func TestSettingsSpeakBothLanguages(t *testing.T) {
	english, russian := loadSchema(t, "../openapi/config-values.yaml"), loadSchema(t, "../openapi/doc-ru-config-values.yaml")
	for name, property := range english.Properties {
		require.NotEmpty(t, property.Description, name)
		require.NotEmpty(t, russian.Properties[name].Description, name)
	}
	require.Len(t, russian.Properties, len(english.Properties))
}
