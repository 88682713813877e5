// Package plan decides how the data plane of system-s3 looks: whether it exists, how many replicas it has, on which
// tier of nodes, on which StorageClass and how large its volumes are. It is pure: equal input gives an equal Plan. It
// refuses to know Kubernetes clients, clocks and logs; hooks gather the Cluster and carry the Plan out.
package plan

// Role is what a plane does in the store.
type Role string

// Roles of a plane.
const (
	RoleActive   Role = "active"
	RoleTarget   Role = "target"
	RoleRetiring Role = "retiring"
)

// Plan is the decision, printed by the chart and carried out by the controller.
type Plan struct {
	// Planes is empty until the first SystemBucket.
	Planes []Plane `json:"planes"`
	// Active is the id of the plane that clients are led to, also while nothing else is known of it.
	Active string `json:"active"`
	// Storage, Placement, Capacity and Migration are the planner's share of the conditions on Module/system-s3.
	Storage   Verdict `json:"storage"`
	Placement Verdict `json:"placement"`
	Capacity  Verdict `json:"capacity"`
	Migration Verdict `json:"migration"`
}

// Verdict is the outcome of one question: whether all is well, the condition's reason and one sentence for the
// administrator, with the way out when it is not well.
type Verdict struct {
	OK      bool   `json:"ok"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Plane is one Garage cluster.
type Plane struct {
	ID                string `json:"id"`
	Role              Role   `json:"role"`
	Epoch             int    `json:"epoch"`
	StorageClass      string `json:"storageClass"`
	Replicas          int    `json:"replicas"`
	ReplicationFactor int    `json:"replicationFactor"`
	VolumeSize        string `json:"volumeSize"`  // a Kubernetes quantity such as 10Gi
	VolumeBytes       int64  `json:"volumeBytes"` // the same in bytes
	OrdinalsStart     int    `json:"ordinalsStart"`
	// Members are the ordinals that have a role in Garage; other replicas are there and hold nothing in use.
	Members []int `json:"members"`
	// Survivor is the only member at factor 1.
	Survivor int `json:"survivor"`
	// Survey asks for the proof that two of three copies may be given up.
	Survey      bool         `json:"survey"`
	Tier        Tier         `json:"tier"`
	NodeLabel   string       `json:"nodeLabel"` // nodes of the tier carry this label, whatever its value
	Tolerations []Toleration `json:"tolerations"`
	// Frozen tells why the chart leaves the StatefulSet and the secrets of this plane as they are; empty when it does
	// not. A frozen plane goes on running.
	Frozen string `json:"frozen"`
	// Why each of the above is as it is.
	Reasons Reasons `json:"reasons"`
}

// Reasons explain a plane to a person: one sentence each.
type Reasons struct {
	Replicas     string `json:"replicas"`
	Tier         string `json:"tier"`
	StorageClass string `json:"storageClass"`
	Volume       string `json:"volume"`
}

// Tier is the group of nodes that carries the data plane.
type Tier string

// Tiers in the order in which the first existing one is taken (SPEC F1).
const (
	TierSystemS3 Tier = "system-s3"
	TierSystem   Tier = "system"
	TierMasters  Tier = "masters"
)

// Toleration has the shape of a Kubernetes toleration.
type Toleration struct {
	Key      string `json:"key"`
	Operator string `json:"operator"`
	Value    string `json:"value,omitempty"`
}

// Reasons of the planner, the condition reasons of DESIGN 8.
const (
	ReasonReady                 = "Ready"
	ReasonWaitingForFirstBucket = "WaitingForFirstBucket"
	ReasonNoStorageClass        = "NoStorageClass"
	ReasonStarting              = "Starting"
	ReasonLayoutFailed          = "LayoutFailed"
	ReasonQuorumLost            = "QuorumLost"
	ReasonDegraded              = "Degraded"
	// ReasonStateUnreadable: something that was decided once, and must never be decided anew, cannot be read back.
	ReasonStateUnreadable = "StateUnreadable"

	ReasonPlaced           = "Placed"
	ReasonPlacementBlocked = "PlacementBlocked"
	ReasonReplicaPinned    = "ReplicaPinned"
	ReasonRelocating       = "Relocating"

	ReasonEnough              = "Enough"
	ReasonGrowing             = "Growing"
	ReasonExhausted           = "Exhausted"
	ReasonExpansionNotAllowed = "ExpansionNotAllowed"
	// ReasonExpansionFailed: the class allows growth, and its storage does not do it.
	ReasonExpansionFailed = "ExpansionFailed"

	ReasonNotNeeded = "NotNeeded"
	// ReasonPreparing: more replicas are made ready beside the store, which goes on.
	ReasonPreparing = "Preparing"
	ReasonCopying   = "Copying"
	ReasonVerifying = "Verifying"
	ReasonSwitching = "Switching"
	ReasonBlocked   = "Blocked"
	// ReasonAborting: a move to another class was called back, and what was made for it goes.
	ReasonAborting = "Aborting"
	ReasonFinished = "Finished"
)
