// Package status decides what the status page says: the facts about the store in, a View out. It is pure, it knows no
// clock, no cluster and no HTML, and it never takes a fact that could not be read for one that does not exist.
package status

import (
	"time"

	"github.com/deckhouse/system-s3/lib/plan"
)

// World is everything that the page is made from.
type World struct {
	Now     time.Time
	Version string
	// Planned tells whether there is a plan; without one Deckhouse has not made the release of the module yet.
	Planned bool
	Plan    plan.Plan
	State   plan.State
	// Conditions of ours on Module/system-s3.
	Conditions []Condition
	Pods       []Pod
	Buckets    []Bucket
	Roles      []Role
	Bindings   []Binding
	Events     []Event
	// Unread are the facts that could not be read.
	Unread []Unread
}

// Source is a kind of facts.
type Source string

// Sources of facts.
const (
	SourcePlan    Source = "the plan"
	SourceState   Source = "the state of the data plane"
	SourceModule  Source = "the conditions of Module/system-s3"
	SourcePods    Source = "the Pods of the store"
	SourceBuckets Source = "the SystemBuckets"
	SourceAccess  Source = "Roles and RoleBindings"
	SourceEvents  Source = "the events"
)

// Unread is a kind of facts that could not be read, and why.
type Unread struct {
	Source Source
	Why    string
}

// Condition of the Module or of a SystemBucket.
type Condition struct {
	Type, Status, Reason, Message string
	Since                         time.Time
}

// Pod is a replica's Pod.
type Pod struct {
	Name string
	// Current tells whether it was made from the present template.
	Current bool
	Created time.Time
}

// Bucket is a SystemBucket.
type Bucket struct {
	Namespace, Name string
	// S3Name is empty until the bucket was made.
	S3Name string
	// Size and MaxObjects are the quotas; MaxObjects is 0 without one.
	Size, MaxObjects int64
	// Used and Objects are valid if Counted.
	Used, Objects int64
	Counted       bool
	Deleting      bool
	// Ready, Quota and DataLost have an empty Type while the condition is absent.
	Ready, Quota, DataLost Condition
}

// Role is a Role, or a ClusterRole if it has no namespace.
type Role struct {
	Namespace, Name string
	Rules           []Rule
}

// Rule is a rule of RBAC.
type Rule struct{ Groups, Resources, Names, Verbs []string }

// Binding is a RoleBinding, or a ClusterRoleBinding if it has no namespace.
type Binding struct {
	Namespace string
	// RoleNamespace is empty if it binds a ClusterRole.
	RoleNamespace, Role string
	Subjects            []Subject
}

// Subject of a binding.
type Subject struct{ Kind, Namespace, Name string }

// Event is something that happened.
type Event struct {
	At      time.Time
	Warning bool
	// Object is what it happened to, such as "SystemBucket d8-x/backups".
	Object, Reason, Message string
	Count                   int
}

// Query is what the reader of the page asks for.
type Query struct {
	Text      string
	Namespace string
	// Trouble leaves only buckets that need attention.
	Trouble bool
	Sort    Sort
	Page    int
}

// Sort is an order of buckets.
type Sort string

// Orders of buckets. Any other value is SortName.
const (
	SortName  Sort = "name"
	SortShare Sort = "share"
	SortUsed  Sort = "used"
	SortSize  Sort = "size"
)
