package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yannh/kubeconform/pkg/resource"
	"github.com/yannh/kubeconform/pkg/validator"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// schemaSources are Go modules that carry the schemas of what the chart prints, by the files in them.
var schemaSources = map[string][]string{
	"k8s.io/kubernetes@v1.34.4": {"api/openapi-spec/swagger.json"},
	"github.com/prometheus-operator/prometheus-operator@v0.85.0": {
		"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
	},
	"k8s.io/autoscaler/vertical-pod-autoscaler@v1.8.1": {"deploy/vpa-v1-crd-gen.yaml"},
	"github.com/cert-manager/cert-manager@v1.21.2":     {"deploy/crds/cert-manager.io_certificates.yaml"},
}

// withoutSchema are kinds of the platform whose schemas are published nowhere as a module.
var withoutSchema = map[string]struct{}{
	"GrafanaDashboardDefinition": {}, "ClusterObservabilityDashboard": {}, "ClusterObservabilityMetricsRulesGroup": {},
	"DexAuthenticator": {},
}

// ownField is what the platform's cert-manager has beside the published schema: whether the Secret goes with its Certificate.
const ownField = "certificateOwnerRef"

// TestEveryObjectConforms holds everything that the chart prints against the schemas of its kind, unknown fields included:
// helm and the apiserver drop them without a word.
func TestEveryObjectConforms(t *testing.T) {
	check := conformer(t)
	for name, w := range worlds() {
		for platform, of := range map[string]world{name: w, name + ", monitored": w.monitored(), name + ", observed": w.observed()} {
			t.Run(platform, func(t *testing.T) {
				for _, each := range objects(t, of) {
					check(t, each)
				}
			})
		}
	}
	for _, mode := range []string{"CertManager", "CustomCertificate", "OnlyInURI"} {
		t.Run("published by "+mode, func(t *testing.T) {
			for _, each := range published(t, mode, "user-authn") {
				check(t, each)
			}
		})
	}
	t.Run("the definition of SystemBucket", func(t *testing.T) {
		check(t, unstructured.Unstructured{Object: readYAML(t, filepath.Join(root, "crds/systembucket.yaml"))[0]})
	})
}

// TestConformerRefuses shows that the check can fail.
func TestConformerRefuses(t *testing.T) {
	schemas := schemaFolder(t)
	bucket := func(spec map[string]any) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "storage.deckhouse.io/v1alpha1", "kind": "SystemBucket", "metadata": map[string]any{"name": "logs"}, "spec": spec,
		}}
	}
	require.Equal(t, validator.Valid, judge(t, schemas, bucket(map[string]any{"size": "1Gi"})).Status)
	require.Equal(t, validator.Invalid, judge(t, schemas, bucket(map[string]any{"size": "1Gi", "colour": "red"})).Status)
	service := unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "s3"}, "spec": map[string]any{"port": 1},
	}}
	require.Equal(t, validator.Invalid, judge(t, schemas, service).Status)
	service.SetKind("Servant")
	require.Equal(t, validator.Error, judge(t, schemas, service).Status, "a kind without a schema is not passed over")
}

func conformer(t *testing.T) func(*testing.T, unstructured.Unstructured) {
	t.Helper()
	schemas := schemaFolder(t)
	return func(t *testing.T, object unstructured.Unstructured) {
		t.Helper()
		result := judge(t, schemas, object)
		if result.Status != validator.Valid && result.Status != validator.Skipped {
			t.Errorf("%s %s: %v %v", object.GetKind(), object.GetName(), result.Err, result.ValidationErrors)
		}
	}
}

func judge(t *testing.T, schemas validator.Validator, object unstructured.Unstructured) validator.Result {
	t.Helper()
	data, err := json.Marshal(object.Object)
	require.NoError(t, err)
	return schemas.ValidateResource(resource.Resource{Path: object.GetName(), Bytes: data})
}

// schemaFolder writes the schema of each kind into a file of its own, as kubeconform looks for them.
func schemaFolder(t *testing.T) validator.Validator {
	t.Helper()
	folder := t.TempDir()
	for module, files := range schemaSources {
		source := moduleFolder(t, module)
		for _, file := range files {
			if filepath.Ext(file) == ".json" {
				writeDefinitions(t, folder, filepath.Join(source, file))
			} else {
				writeCRDs(t, folder, filepath.Join(source, file))
			}
		}
	}
	writeCRDs(t, folder, filepath.Join(root, "crds/systembucket.yaml"))
	schemas, err := validator.New([]string{folder + "/{{ .ResourceKind }}{{ .KindSuffix }}.json"}, validator.Opts{Strict: true, SkipKinds: withoutSchema})
	require.NoError(t, err)
	return schemas
}

// moduleFolder is where the files of a module are, which is downloaded when it is not there yet.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	command.Dir = t.TempDir()
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	require.NoError(t, err, "%s %s", output, stderr.String())
	var found struct {
		Dir string `json:"Dir"`
	}
	require.NoError(t, json.Unmarshal(output, &found))
	return found.Dir
}

// writeDefinitions takes the kinds out of the apiserver's own description.
func writeDefinitions(t *testing.T, folder, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var described struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	require.NoError(t, json.Unmarshal(data, &described))
	for _, definition := range described.Definitions {
		strict(definition)
	}
	writeJSON(t, filepath.Join(folder, "all.json"), described)
	for name, definition := range described.Definitions {
		kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
		for _, each := range kinds {
			kind := each.(map[string]any)
			schema := map[string]any{"$ref": "all.json#/definitions/" + name}
			writeJSON(t, schemaFile(folder, kind["kind"], kind["group"], kind["version"]), schema)
		}
	}
}

func writeCRDs(t *testing.T, folder, file string) {
	t.Helper()
	for _, crd := range readYAML(t, file) {
		spec := crd["spec"].(map[string]any)
		for _, each := range spec["versions"].([]any) {
			version := each.(map[string]any)
			schema := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
			if kind := spec["names"].(map[string]any)["kind"]; kind == "Certificate" {
				fields := schema["properties"].(map[string]any)["spec"].(map[string]any)["properties"].(map[string]any)
				fields[ownField] = map[string]any{"type": "boolean"}
			}
			strict(schema)
			writeJSON(t, schemaFile(folder, spec["names"].(map[string]any)["kind"], spec["group"], version["name"]), schema)
		}
	}
}

// strict makes a schema refuse fields that it does not name, and gives the types that Kubernetes writes in two ways both.
func strict(schema map[string]any) {
	properties, named := schema["properties"].(map[string]any)
	_, open := schema["additionalProperties"]
	if named && !open && schema["x-kubernetes-preserve-unknown-fields"] != true && schema["x-kubernetes-embedded-resource"] != true {
		schema["additionalProperties"] = false
	}
	if schema["format"] == "int-or-string" || schema["x-kubernetes-int-or-string"] == true {
		schema["type"] = []any{"string", "integer"}
		delete(schema, "format")
	}
	for _, each := range properties {
		strict(each.(map[string]any))
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if nested, ok := schema[key].(map[string]any); ok {
			strict(nested)
		}
	}
}

func schemaFile(folder string, kind, group, version any) string {
	name := strings.ToLower(kind.(string))
	if first, _, _ := strings.Cut(group.(string), "."); first != "" {
		name += "-" + first
	}
	return filepath.Join(folder, fmt.Sprintf("%s-%s.json", name, version))
}

func writeJSON(t *testing.T, file string, content any) {
	t.Helper()
	data, err := json.Marshal(content)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o600))
}

func readYAML(t *testing.T, file string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var found []map[string]any
	for document := range strings.SplitSeq("\n"+string(data), "\n---") {
		var object map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(document), &object))
		if len(object) > 0 {
			found = append(found, object)
		}
	}
	return found
}
