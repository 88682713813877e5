package platform

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var crdResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// defaultClassAnnotations mark the default StorageClass, the older form last.
func defaultClassAnnotations() []string {
	return []string{
		"storageclass.kubernetes.io/is-default-class",
		"storageclass.beta.kubernetes.io/is-default-class",
	}
}

// observed is one reading of the cluster.
type observed struct {
	world  World
	config *ModuleConfig // of our module; nil when there is none
}

// observe reads everything that a decision is made from.
func (c *controller) observe(ctx context.Context) (observed, error) {
	nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return observed{}, fmt.Errorf("list nodes: %w", err)
	}

	classes, err := c.client.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return observed{}, fmt.Errorf("list storage classes: %w", err)
	}

	versions, err := c.apiVersions(ctx)
	if err != nil {
		return observed{}, err
	}

	config, err := c.moduleConfig(ctx, c.definition.Name)
	if err != nil {
		return observed{}, err
	}

	global, err := c.moduleConfig(ctx, globalConfig)
	if err != nil {
		return observed{}, err
	}

	world := World{
		Nodes:          labelsOf(nodes.Items),
		DefaultClass:   defaultClass(classes.Items),
		APIVersions:    versions,
		EnabledModules: c.enabledModules(config),
		Cluster:        c.facts,
	}
	if global != nil {
		world.Settings = global.Spec.Settings
	}

	return observed{world: world, config: config}, nil
}

// moduleConfig reads a ModuleConfig; nil means that nobody has written it.
func (c *controller) moduleConfig(ctx context.Context, name string) (*ModuleConfig, error) {
	object, err := c.objects.Resource(moduleConfigResource).Get(ctx, name, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return nil, nil // Absence is an answer with its own meaning: the bundle decides.
	}

	if err != nil {
		return nil, fmt.Errorf("read ModuleConfig %s: %w", name, err)
	}

	return moduleConfigFrom(object)
}

// experimental tells whether the platform's own ModuleConfig allows experimental modules.
func (c *controller) experimental(ctx context.Context) bool {
	config, err := c.moduleConfig(ctx, deckhouseConfig)

	return err == nil && config != nil && config.Spec.Settings["allowExperimentalModules"] == true
}

// apiVersions lists what the CRDs of modules serve.
func (c *controller) apiVersions(ctx context.Context) ([]string, error) {
	crds, err := c.objects.Resource(crdResource).List(ctx, metav1.ListOptions{LabelSelector: "heritage=deckhouse"})
	if err != nil {
		return nil, fmt.Errorf("list CRDs: %w", err)
	}

	var versions []string
	for _, crd := range crds.Items {
		versions = append(versions, servedBy(crd.Object)...)
	}

	return versions, nil
}

func servedBy(crd map[string]any) []string {
	group, _, _ := unstructured.NestedString(crd, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")

	var served []string

	for _, item := range versions {
		version, _ := item.(map[string]any)
		if version["served"] == true {
			served = append(served, fmt.Sprintf("%s/%v/%s", group, version["name"], kind))
		}
	}

	return served
}

// enabledModules are the modules that the sandbox pretends to run and ours when it is
// on, with the alias that the platform adds for modules that bring CRDs.
func (c *controller) enabledModules(config *ModuleConfig) []string {
	names := append([]string{}, c.pretended...)
	if config.enabled(c.definition.EnabledByBundle()) {
		names = append(names, c.definition.Name, c.definition.Name+"-crd")
	}

	return names
}

func labelsOf(nodes []corev1.Node) []map[string]string {
	labels := make([]map[string]string, 0, len(nodes))
	for _, node := range nodes {
		labels = append(labels, node.Labels)
	}

	return labels
}

func defaultClass(classes []storagev1.StorageClass) string {
	for _, class := range classes {
		for _, annotation := range defaultClassAnnotations() {
			if class.Annotations[annotation] == "true" {
				return class.Name
			}
		}
	}

	return ""
}
