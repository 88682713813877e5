package plan

// State is what the controller observed and how far it is: key state.json of ConfigMap data-plane. The controller is
// its only writer; hooks and the status page read it.
type State struct {
	Planes []PlaneState `json:"planes"`
	// Migration to another StorageClass; nil while there is none.
	Migration *MigrationState `json:"migration,omitempty"`
}

// PlaneState is a plane as the controller sees it.
type PlaneState struct {
	ID string `json:"id"`
	// Epoch whose layout is applied; 0 while none is.
	Epoch int `json:"epoch"`
	// LayoutVersion of Garage; 0 while there is no layout.
	LayoutVersion int `json:"layoutVersion"`
	// Healthy and Available as GetClusterHealth tells them: connectivity, not re-replication.
	Healthy   bool `json:"healthy"`
	Available bool `json:"available"`
	// ReplicationFactor in force.
	ReplicationFactor int `json:"replicationFactor"`
	// Replicas by ordinal.
	Replicas []ReplicaState `json:"replicas"`
	// EpochSince is when the layout of Epoch was first seen in force, in RFC 3339, UTC.
	EpochSince string `json:"epochSince,omitempty"`
	// Opened is the last epoch in which clients were let in.
	Opened int `json:"opened,omitempty"`
	// Whole is the last epoch in which every replica with a role was proven to hold all copies.
	Whole int `json:"whole,omitempty"`
	// Proven tells that the plane may give up two of its three copies, which the plan has asked.
	Proven bool `json:"proven,omitempty"`
	// Handed is the last epoch that ended with equal tables on all replicas and no write on its way.
	Handed int `json:"handed,omitempty"`
	// Spoiled is an epoch in which a replica began although the one before had not been handed over.
	Spoiled int `json:"spoiled,omitempty"`
	// Moving is the Pod of the replica that is being moved, or waits to be; empty when each is where it belongs.
	Moving string `json:"moving,omitempty"`
	// Problem is the last error that stops the plane from getting ready, empty when there is none.
	Problem string `json:"problem,omitempty"`
}

// ReplicaState is one Garage node of a plane.
type ReplicaState struct {
	Ordinal int    `json:"ordinal"`
	Node    string `json:"node,omitempty"` // Kubernetes node, empty while Pending
	Up      bool   `json:"up"`
	// Stale: the replica had a role in an earlier epoch, and none for so long that it may not get one again.
	Stale bool `json:"stale,omitempty"`
	Ready bool `json:"ready"`
	// VolumeBytes and VolumeFree are the gateway's measurement of the volume; both 0 when unknown.
	VolumeBytes int64 `json:"volumeBytes"`
	VolumeFree  int64 `json:"volumeFree"`
	// Full tells whether the volume had less than 5 % free while its claim had a capacity of ClaimBytes. The claim is
	// read before the volume is measured, so that an old measurement never asks for another step of growth.
	Full       bool  `json:"full"`
	ClaimBytes int64 `json:"claimBytes"`
	// Content names what is on the volume: another name after it was emptied. Empty while unknown.
	Content string `json:"content,omitempty"`
	// Proven is the Content at the last proof that all replicas hold everything; empty before the first one.
	Proven string `json:"proven,omitempty"`
	// Fill is how far the replica is filled from the others; nil when it holds everything, as far as is known.
	Fill *FillState `json:"fill,omitempty"`
}

// FillState is how far a replica is filled from the others. Totals are what the fullest of them has.
type FillState struct {
	Percent      int   `json:"percent"` // of what is behind most
	Objects      int   `json:"objects"` // entries of the table of objects
	ObjectsTotal int   `json:"objectsTotal"`
	Blocks       int   `json:"blocks"`
	BlocksTotal  int   `json:"blocksTotal"`
	Bytes        int64 `json:"bytes"` // used on the volume
	BytesTotal   int64 `json:"bytesTotal"`
	// SecondsLeft, in whole minutes, at the speed so far; 0 while unknown.
	SecondsLeft int `json:"secondsLeft,omitempty"`
}

// leastFree is the share of a volume, in percent, below which it counts as full and grows (SPEC D3).
const leastFree = 5

// Full tells whether a volume with so many bytes, of which so many are free, has to grow. An unmeasured one has not.
func Full(total, free int64) bool {
	const all = 100
	return total > 0 && free < total/all*leastFree
}
