package main

import (
	"github.com/deckhouse/module-sdk/pkg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhouse/system-s3/lib/names"
)

// Names of the snapshots.
const (
	nodesSnapshot        = "nodes"
	classesSnapshot      = "classes"
	bucketsSnapshot      = "buckets"
	statefulSetsSnapshot = "statefulsets"
	secretsSnapshot      = "secrets"
	claimsSnapshot       = "claims"
	stateSnapshot        = "state"
)

// The filters keep only what is used: an event that changes nothing else runs no hook.
const (
	nodesFilter = `{
  name: .metadata.name,
  labels: [(.metadata.labels // {}) | keys[] | select(. == "node-role.deckhouse.io/system-s3" or . == "node-role.deckhouse.io/system" or . == "node-role.kubernetes.io/control-plane")]
}`

	classesFilter = `(.metadata.annotations // {}) as $a | {
  name: .metadata.name,
  createdAt: .metadata.creationTimestamp,
  default: ($a."storageclass.kubernetes.io/is-default-class" == "true" or $a."storageclass.beta.kubernetes.io/is-default-class" == "true"),
  immediate: (.volumeBindingMode != "WaitForFirstConsumer"),
  expandable: (.allowVolumeExpansion == true and $a."storageclass.deckhouse.io/volume-expansion-mode" != "offline")
}`

	bucketsFilter = `{namespace: .metadata.namespace, name: .metadata.name, size: (.spec.size | tostring)}`

	factsFilter = `(.metadata.annotations // {} | with_entries(select(.key | startswith("system-s3.deckhouse.io/"))))`

	statefulSetsFilter = `{
  name: .metadata.name,
  plane: .metadata.labels."system-s3.deckhouse.io/plane",
  facts: ` + factsFilter + `,
  size: (.spec.volumeClaimTemplates[0].spec.resources.requests.storage // "" | tostring),
  deleting: (.metadata.deletionTimestamp != null)
}`

	secretsFilter = `{
  name: .metadata.name,
  plane: .metadata.labels."system-s3.deckhouse.io/plane",
  facts: ` + factsFilter + `,
  data: (.data // {})
}`

	claimsFilter = `(.status.conditions // []) as $c | (.status.allocatedResourceStatuses.storage // "") as $s | {
  name: .metadata.name,
  plane: .metadata.labels."system-s3.deckhouse.io/plane",
  class: (.spec.storageClassName // ""),
  size: (.spec.resources.requests.storage // "" | tostring),
  capacity: (.status.capacity.storage // "" | tostring),
  bound: (.status.phase == "Bound"),
  deleting: (.metadata.deletionTimestamp != null),
  awaitsPod: any($c[]; .type == "FileSystemResizePending" and .status == "True"),
  failure: ([$c[] | select((.type == "ControllerResizeError" or .type == "NodeResizeError") and .status == "True") | (.message // .type)] +
    [$s | select(. == "ControllerResizeInfeasible" or . == "NodeResizeInfeasible")] | first // "")
}`

	// Only what growth, changes of the replicas and roles depend on: how much is free, or copied, in each moment is no
	// reason to run a hook.
	stateFilter = `((.data."state.json" // "") | (fromjson? // {})) as $s | {
migration: ($s.migration | if type == "object" then {source: (.source // ""), target: (.target // ""), phase: (.phase // "")} else null end),
planes: [($s.planes // [])[] | {
  id: .id, epoch: (.epoch // 0), available: (.available // false),
  whole: (.whole // 0), proven: (.proven // false), spoiled: (.spoiled // 0),
  replicas: [(.replicas // [])[] | {
    ordinal: .ordinal, node: (.node // ""), up: .up, stale: (.stale // false), full: (.full // false), claimBytes: (.claimBytes // 0)
  }]
}]}`
)

func nodesBinding() pkg.KubernetesConfig {
	return pkg.KubernetesConfig{Name: nodesSnapshot, APIVersion: "v1", Kind: "Node", JqFilter: nodesFilter}
}

func classesBinding() pkg.KubernetesConfig {
	return pkg.KubernetesConfig{Name: classesSnapshot, APIVersion: "storage.k8s.io/v1", Kind: "StorageClass", JqFilter: classesFilter}
}

func bucketsBinding() pkg.KubernetesConfig {
	return pkg.KubernetesConfig{Name: bucketsSnapshot, APIVersion: names.Group + "/" + names.Version, Kind: names.Kind, JqFilter: bucketsFilter}
}

func statefulSetsBinding() pkg.KubernetesConfig {
	return ofPlanes(pkg.KubernetesConfig{Name: statefulSetsSnapshot, APIVersion: "apps/v1", Kind: "StatefulSet", JqFilter: statefulSetsFilter})
}

func secretsBinding() pkg.KubernetesConfig {
	return ofPlanes(pkg.KubernetesConfig{Name: secretsSnapshot, APIVersion: "v1", Kind: "Secret", JqFilter: secretsFilter})
}

func claimsBinding() pkg.KubernetesConfig {
	return ofPlanes(pkg.KubernetesConfig{Name: claimsSnapshot, APIVersion: "v1", Kind: "PersistentVolumeClaim", JqFilter: claimsFilter})
}

// stateBinding is what the controller tells.
func stateBinding() pkg.KubernetesConfig {
	return pkg.KubernetesConfig{
		Name: stateSnapshot, APIVersion: "v1", Kind: "ConfigMap", JqFilter: stateFilter,
		NamespaceSelector: &pkg.NamespaceSelector{NameSelector: &pkg.NameSelector{MatchNames: []string{names.Namespace}}},
		NameSelector:      &pkg.NameSelector{MatchNames: []string{names.StateConfigMap}},
	}
}

// ofPlanes narrows a binding to the objects of planes in the module's namespace.
func ofPlanes(b pkg.KubernetesConfig) pkg.KubernetesConfig {
	b.NamespaceSelector = &pkg.NamespaceSelector{NameSelector: &pkg.NameSelector{MatchNames: []string{names.Namespace}}}
	b.LabelSelector = &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: names.PlaneLabel, Operator: metav1.LabelSelectorOpExists}},
	}
	return b
}

// silent makes a binding that fills a snapshot and runs no hook.
func silent(b pkg.KubernetesConfig) pkg.KubernetesConfig {
	no := false
	b.ExecuteHookOnEvents = &no
	b.ExecuteHookOnSynchronization = &no
	return b
}
