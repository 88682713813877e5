// Package layout decides the next step from the roles that a Garage cluster has to the roles that it should have. It
// is pure: equal worlds give equal steps. It refuses to know how a step is carried out. One step a pass: after each the
// world is read again, so that a crash between any two steps is harmless.
package layout

// Capacity is what every replica gets, in bytes. It is nominal: with as many replicas as copies each replica stores
// everything and Garage never compares stored bytes with it, so following the volume would only make layout versions,
// each of them a full synchronisation of the tables.
const Capacity int64 = 1 << 40

// Role is what a node does in the cluster.
type Role struct {
	ID       string // 64 hexadecimal digits
	Zone     string
	Capacity int64 // bytes; 0 is a node that stores nothing
}

// Change is a staged change of a node's role.
type Change struct {
	Role
	Remove bool // the node loses its role; Zone and Capacity mean nothing then
}

// Layout is a cluster's layout as one node tells it.
type Layout struct {
	Version int // 0 is a cluster that never had one
	Roles   []Role
	Staged  []Change
	// StagedParameters tells that parameters of the whole layout are staged. We never do that.
	StagedParameters bool
	// Draining tells that an older version is still live, since not every node has synchronised.
	Draining bool
}

// Presence is whether a node takes part right now.
type Presence int

// The presences.
const (
	Homeless Presence = iota // the Pod has no Kubernetes node
	Starting                 // the Pod has one, its Garage does not answer or is not connected yet
	Up                       // connected to the node that was asked
)

// Node is a replica that the plan wants.
type Node struct {
	ID       string
	Name     string // the Pod's, also the zone: each replica fails by itself
	Presence Presence
}

// World is all that a step depends on.
type World struct {
	Layout Layout
	Factor int // copies of everything
	Nodes  []Node
}

// Kind of a step.
type Kind int

// The kinds.
const (
	Steady Kind = iota // nothing to do
	Wait               // nothing can be done now, and it passes by itself
	Refuse             // nothing can be done, and a person has to act
	Revert             // throw away what is staged
	Stage              // stage Changes
	Apply              // preview what is staged and, when it can be computed, apply it as Version
)

// Reasons of a step, in the words of the condition StorageReady.
const (
	ReasonReady        = "Ready"
	ReasonStarting     = "Starting"
	ReasonLayoutFailed = "LayoutFailed"
)

// Step is the decision.
type Step struct {
	Kind    Kind
	Changes []Change // of Stage, ordered by id
	Version int      // of Apply
	Reason  string
	Message string // one sentence for the administrator
}
