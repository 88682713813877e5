package platform

import (
	"maps"
	"slices"
	"strings"
)

const (
	controlPlaneRole = "node-role.kubernetes.io/control-plane"
	deckhouseRole    = "node-role.deckhouse.io/"
)

// World is what the global discovery hooks of the platform look at.
type World struct {
	Nodes          []map[string]string // labels of each node
	DefaultClass   string              // name of the default StorageClass, empty if there is none
	APIVersions    []string            // group/version/Kind of the CRDs that modules brought
	EnabledModules []string            // names of the modules that run
	Settings       map[string]any      // settings of ModuleConfig global
	Cluster        ClusterFacts
}

// ClusterFacts are the facts about the cluster that do not change while it lives.
type ClusterFacts struct {
	Domain            string
	KubernetesVersion string
	DeckhouseVersion  string
}

// Globals computes the global values as the platform's discovery hooks would. A key
// that the platform removes when there is nothing to say is absent here too.
func Globals(world World) map[string]any {
	masters := countLabel(world.Nodes, controlPlaneRole)

	discovery := map[string]any{
		"apiVersions":                          slices.Sorted(slices.Values(world.APIVersions)),
		"clusterControlPlaneIsHighlyAvailable": masters > 1,
		"clusterDomain":                        world.Cluster.Domain,
		"clusterMasterCount":                   masters,
		"d8SpecificNodeCountByRole":            roleCounts(world.Nodes),
		"kubernetesVersion":                    strings.TrimPrefix(world.Cluster.KubernetesVersion, "v"),
		"prometheusScrapeInterval":             30,
	}
	if world.DefaultClass != "" {
		discovery["defaultStorageClass"] = world.DefaultClass
	}

	global := map[string]any{
		"clusterConfiguration":  map[string]any{"clusterDomain": world.Cluster.Domain, "clusterType": "Static"},
		"clusterIsBootstrapped": true,
		"deckhouseVersion":      world.Cluster.DeckhouseVersion,
		"discovery":             discovery,
		"enabledModules":        slices.Sorted(slices.Values(world.EnabledModules)),
		"modules":               map[string]any{"placement": map[string]any{}},
	}

	overlay(global, world.Settings)

	return global
}

// overlay writes the user's global settings over the computed values, object by object.
func overlay(values, settings map[string]any) {
	for key, value := range settings {
		below, isObject := value.(map[string]any)
		present, hasObject := values[key].(map[string]any)

		if isObject && hasObject {
			overlay(present, below)
			continue
		}

		values[key] = value
	}
}

// countLabel counts the nodes that carry the label, whatever its value.
func countLabel(nodes []map[string]string, label string) int {
	count := 0

	for _, labels := range nodes {
		if _, present := labels[label]; present {
			count++
		}
	}

	return count
}

// roleCounts counts the nodes of each Deckhouse role under the role's camelCase name.
func roleCounts(nodes []map[string]string) map[string]any {
	counts := map[string]any{}

	for _, labels := range nodes {
		for label := range maps.Keys(labels) {
			role, isRole := strings.CutPrefix(label, deckhouseRole)
			if !isRole || role == "" {
				continue
			}

			count, _ := counts[camel(role)].(int)
			counts[camel(role)] = count + 1
		}
	}

	return counts
}
