// Package chart renders the module's chart the way the platform does, for tests: with values whose plan was made by
// lib/plan, so that planner, schema and templates are checked as one chain without a cluster.
package chart

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Render returns the printed files of the chart in dir by their path in it. Files that print nothing are left out.
func Render(dir string, values map[string]any, apis ...string) (map[string]string, error) {
	c, err := loader.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("load chart: %w", err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), apis...)
	release := chartutil.ReleaseOptions{Name: "system-s3", Namespace: "d8-system", IsInstall: true}
	full, err := chartutil.ToRenderValues(c, values, release, capabilities)
	if err != nil {
		return nil, fmt.Errorf("compose values: %w", err)
	}
	printed, err := engine.Render(c, full)
	if err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	files := map[string]string{}
	for name, content := range printed {
		if strings.TrimSpace(content) != "" && path.Ext(name) == ".yaml" {
			files[strings.TrimPrefix(name, c.Name()+"/templates/")] = content
		}
	}
	return files, nil
}

// Objects parses the printed files, in the order of their paths.
func Objects(files map[string]string) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for document := range strings.SplitSeq(files[name], "\n---") {
			var object map[string]any
			if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
				return nil, fmt.Errorf("parse %s: %w", name, err)
			}
			if len(object) > 0 {
				objects = append(objects, unstructured.Unstructured{Object: object})
			}
		}
	}
	return objects, nil
}
