package main

import (
	"fmt"

	"github.com/deckhouse/module-sdk/pkg"
	objectpatch "github.com/deckhouse/module-sdk/pkg/object-patch"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/deckhouse/system-s3/lib/plan"
)

// Shapes of the snapshots: what the filters leave of an object.
type (
	nodeSnapshot struct {
		Name   string   `json:"name"`
		Labels []string `json:"labels"`
	}
	classSnapshot struct {
		Name       string `json:"name"`
		CreatedAt  string `json:"createdAt"`
		Default    bool   `json:"default"`
		Immediate  bool   `json:"immediate"`
		Expandable bool   `json:"expandable"`
	}
	bucketSnapshot struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Size      string `json:"size"`
	}
	statefulSetSnapshot struct {
		Name     string            `json:"name"`
		Plane    string            `json:"plane"`
		Facts    map[string]string `json:"facts"`
		Size     string            `json:"size"`
		Deleting bool              `json:"deleting"`
	}
	secretSnapshot struct {
		Name  string            `json:"name"`
		Plane string            `json:"plane"`
		Facts map[string]string `json:"facts"`
		Data  map[string][]byte `json:"data"`
	}
	claimSnapshot struct {
		Name      string `json:"name"`
		Plane     string `json:"plane"`
		Class     string `json:"class"`
		Size      string `json:"size"`
		Capacity  string `json:"capacity"`
		Bound     bool   `json:"bound"`
		Deleting  bool   `json:"deleting"`
		AwaitsPod bool   `json:"awaitsPod"`
		Failure   string `json:"failure"`
	}
)

// observe gathers the snapshots into what the planner knows as the cluster.
func observe(input *pkg.HookInput) (plan.Cluster, error) {
	var c plan.Cluster
	nodes, err := objectpatch.UnmarshalToStruct[nodeSnapshot](input.Snapshots, nodesSnapshot)
	if err != nil {
		return c, fmt.Errorf("read nodes: %w", err)
	}
	for _, n := range nodes {
		c.Nodes = append(c.Nodes, plan.Node(n))
	}
	if c.Classes, err = observeClasses(input.Snapshots); err != nil {
		return c, err
	}
	buckets, err := objectpatch.UnmarshalToStruct[bucketSnapshot](input.Snapshots, bucketsSnapshot)
	if err != nil {
		return c, fmt.Errorf("read SystemBuckets: %w", err)
	}
	for _, b := range buckets {
		c.Buckets = append(c.Buckets, plan.Bucket{Namespace: b.Namespace, Name: b.Name, Bytes: bytesOf(b.Size)})
	}
	if c.Migration, err = observeMigration(input.Snapshots); err != nil {
		return c, err
	}
	c.Planes, err = observePlanes(input)
	return c, err
}

func observeClasses(snapshots pkg.Snapshots) ([]plan.StorageClass, error) {
	classes, err := objectpatch.UnmarshalToStruct[classSnapshot](snapshots, classesSnapshot)
	if err != nil {
		return nil, fmt.Errorf("read StorageClasses: %w", err)
	}
	found := make([]plan.StorageClass, 0, len(classes))
	for _, s := range classes {
		found = append(found, plan.StorageClass{
			Name: s.Name, CreatedAt: s.CreatedAt, Default: s.Default, Immediate: s.Immediate, Expandable: s.Expandable,
		})
	}
	return found, nil
}

// bytesOf reads a quantity. The API refuses what is none; one that got past it asks for no space, and the store, which
// never shrinks, keeps what it has.
func bytesOf(size string) int64 {
	q, err := resource.ParseQuantity(size)
	if err != nil {
		return 0
	}
	return q.Value()
}
