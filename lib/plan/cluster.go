package plan

import (
	"cmp"
	"slices"
)

// Labels of nodes that decide the tier; only their existence counts, not their values.
const (
	SystemS3NodeLabel = "node-role.deckhouse.io/system-s3"
	SystemNodeLabel   = "node-role.deckhouse.io/system"
	MasterNodeLabel   = "node-role.kubernetes.io/control-plane"
)

// Cluster is what the hooks observed. The order of the slices has no meaning.
type Cluster struct {
	Nodes   []Node
	Classes []StorageClass
	Buckets []Bucket
	Planes  []ObservedPlane
	// Migration is the controller's word on how far a move to another StorageClass is; nil when it tells of none.
	Migration *MigrationState
}

// Node is a node of the cluster with those of its labels that decide the tier.
type Node struct {
	Name   string
	Labels []string
}

// StorageClass is a StorageClass of the cluster.
type StorageClass struct {
	Name    string
	Default bool
	// CreatedAt in RFC 3339, UTC: of several default classes Kubernetes takes the newest.
	CreatedAt string
	// Immediate: volumes are provisioned before the Pod has a node.
	Immediate bool
	// Expandable: bound volumes can grow without stopping the Pod.
	Expandable bool
}

// Bucket is a SystemBucket.
type Bucket struct {
	Namespace string
	Name      string
	// Bytes of its quota by space.
	Bytes int64
}

// Facts of a plane are decided once, written on its objects and read back ever after.
type Facts struct {
	StorageClass      string
	Replicas          int
	ReplicationFactor int
	Epoch             int
	// Survivor is the ordinal of the replica that has the only role at factor 1.
	Survivor int
	// Role of the plane; planes of versions that had only one have none, and are active.
	Role Role
}

// ObservedPlane is a plane of which something exists: a StatefulSet, a Secret or volumes.
type ObservedPlane struct {
	ID string
	Facts
	// Known is whether Facts were read; a plane without them is never touched.
	Known bool
	// Unreadable tells which fact exists but cannot be read, and what to do; empty when all is well.
	Unreadable string
	// TemplateBytes is the size that the StatefulSet gives to new claims; 0 while there is no StatefulSet.
	TemplateBytes int64
	Claims        []Claim
	Progress      Progress
}

// Claim is a PersistentVolumeClaim of a plane and what is known of the volume behind it.
type Claim struct {
	Name  string
	Class string
	// Bytes it asks for, and Capacity that it has: its growth is finished, file system included, when both are equal.
	Bytes    int64
	Capacity int64
	Bound    bool
	Deleting bool
	// AwaitsPod: the storage has grown, the file system grows when the volume is mounted.
	AwaitsPod bool
	// Failure is what the storage says about a growth that it did not do; empty when it says nothing.
	Failure string
	// Up tells whether the replica on it answers, and Node where it runs.
	Up   bool
	Node string
	// Stale: the replica had a role once, and none for so long that deletions may be forgotten.
	Stale bool
	// Full tells whether less than 5 % were free at the last measurement, when the claim had FullBytes.
	Full      bool
	FullBytes int64
}

// Settings are what people wrote down and what the platform found out by itself.
type Settings struct {
	// HighAvailability of the module and of the platform; nil when not written down.
	HighAvailability       *bool
	GlobalHighAvailability *bool
	// ControlPlaneHighlyAvailable is the platform's own finding.
	ControlPlaneHighlyAvailable bool
	// StorageClass of the module and of the platform; empty when not written down.
	StorageClass       string
	GlobalStorageClass string
}

// sorted is the cluster in one order, whatever order it was observed in.
func (c Cluster) sorted() Cluster {
	return Cluster{
		Migration: c.Migration,
		Nodes:     slices.SortedFunc(slices.Values(c.Nodes), func(a, b Node) int { return cmp.Compare(a.Name, b.Name) }),
		Classes:   slices.SortedFunc(slices.Values(c.Classes), func(a, b StorageClass) int { return cmp.Compare(a.Name, b.Name) }),
		Buckets: slices.SortedFunc(slices.Values(c.Buckets), func(a, b Bucket) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		}),
		Planes: sortedPlanes(c.Planes),
	}
}

func sortedPlanes(planes []ObservedPlane) []ObservedPlane {
	sorted := slices.SortedFunc(slices.Values(planes), func(a, b ObservedPlane) int { return cmp.Compare(a.ID, b.ID) })
	for i := range sorted {
		sorted[i].Claims = sortedClaims(sorted[i].Claims)
	}
	return sorted
}

func sortedClaims(claims []Claim) []Claim {
	return slices.SortedFunc(slices.Values(claims), func(a, b Claim) int { return cmp.Compare(a.Name, b.Name) })
}

// largest is the largest size of the plane that was ever asked for. What a storage gives beyond that does not count: with
// one that rounds up, sizes would chase each other.
func (o ObservedPlane) largest() int64 {
	size := o.TemplateBytes
	for _, c := range o.Claims {
		size = max(size, c.Bytes)
	}
	return size
}

// class is the StorageClass of the name.
func (c Cluster) class(name string) (StorageClass, bool) {
	i := slices.IndexFunc(c.Classes, func(s StorageClass) bool { return s.Name == name })
	if i < 0 {
		return StorageClass{}, false
	}
	return c.Classes[i], true
}

// expandable tells whether claims of the class can grow while they are used.
func (c Cluster) expandable(name string) bool {
	class, ok := c.class(name)
	return ok && class.Expandable
}

// labelled is the names of the nodes that carry the label.
func (c Cluster) labelled(label string) []string {
	var found []string
	for _, n := range c.Nodes {
		if slices.Contains(n.Labels, label) {
			found = append(found, n.Name)
		}
	}
	return found
}
