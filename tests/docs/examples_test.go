package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// schemas are ours by kind: of a SystemBucket's spec and of the settings in a ModuleConfig.
type schemas map[string]*spec.Schema

func ourSchemas(t *testing.T) schemas {
	t.Helper()
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema spec.Schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	parse(t, root+"/crds/systembucket.yaml", &crd)
	bucket := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	settings := &spec.Schema{}
	parse(t, root+"/openapi/config-values.yaml", settings)
	for _, s := range []*spec.Schema{&bucket, settings} {
		require.NotEmpty(t, s.Properties)
		s.AdditionalProperties = &spec.SchemaOrBool{} // what is not declared is refused
	}
	return schemas{"SystemBucket": &bucket, "ModuleConfig": settings}
}

func parse(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data, err = yaml.YAMLToJSON(data)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, into))
}

// object is any of Kubernetes, with what ours have beside a name.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec"`
}

// exampleProblems are documents of a page that a cluster would not take.
func (s schemas) exampleProblems(p page) []string {
	var problems []string
	for _, b := range p.blocks {
		if b.language != "yaml" {
			continue
		}
		for document := range strings.SplitSeq(b.text, "\n---\n") {
			if err := s.example([]byte(document)); err != nil {
				problems = append(problems, fmt.Sprintf("%v:\n%s", err, document))
			}
		}
	}
	return problems
}

func (s schemas) example(document []byte) error {
	var o object
	if err := yaml.Unmarshal(document, &o); err != nil {
		return err
	}
	switch {
	case o.Kind == "":
		return nil // a part of something
	case o.Kind == "SystemBucket" && !strings.HasPrefix(o.Metadata.Namespace, "d8-") && !strings.HasPrefix(o.Metadata.Namespace, "kube-"):
		return fmt.Errorf("a SystemBucket in namespace %q is refused", o.Metadata.Namespace)
	case o.Kind == "SystemBucket":
		return s.judge("SystemBucket", o.Spec)
	case o.Kind == "ModuleConfig" && o.Metadata.Name == "system-s3":
		settings, _ := o.Spec["settings"].(map[string]any)
		return s.judge("ModuleConfig", settings)
	case scheme.Scheme.Recognizes(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)):
		return strictly(document)
	}
	return nil
}

func (s schemas) judge(kind string, value map[string]any) error {
	if value == nil {
		value = map[string]any{}
	}
	result := validate.NewSchemaValidator(s[kind], nil, kind, strfmt.Default).Validate(value)
	return result.AsError()
}

// strictly reads an object of Kubernetes and refuses fields that it does not have.
func strictly(document []byte) error {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	_, err := runtime.Decode(decoder, document)
	return err
}

func TestExamplesAreValid(t *testing.T) {
	s, found := ourSchemas(t), 0
	for _, p := range pages(t) {
		assert.Empty(t, s.exampleProblems(p), p.path)
		found += len(p.blocks)
	}
	require.Greater(t, found, 20)
	require.Len(t, s.exampleProblems(read(t, badPages+"/examples.md")), 5)
}
