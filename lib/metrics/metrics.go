// Package metrics declares every metric of system-s3: name, type, labels and what it says. The programs make their
// metrics from these declarations, the documentation's table is printed from them, and the tests of alerts and dashboards
// accept no other names. It is pure and knows no metrics library.
package metrics

import "slices"

// Kind is the type of a metric in Prometheus' words.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Source is the program that tells a metric.
type Source string

// The sources.
const (
	Gateway    Source = "gateway"    // one beside each replica
	Controller Source = "controller" // every replica
	Leader     Source = "leader"     // the controller's replica that drives the store
)

// Metric is a declared metric.
type Metric struct {
	Name    string
	Kind    Kind
	Labels  []string
	Help    string
	Sources []Source
	Buckets []float64 // of a histogram
}

var declared []Metric

func declare(m Metric) Metric {
	declared = append(declared, m)
	return m
}

// All is every metric, in the order of the documentation.
func All() []Metric { return slices.Clone(declared) }

// Series are the names that the metric has in a query.
func (m Metric) Series() []string {
	if m.Kind == Histogram {
		return []string{m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}
	}
	return []string{m.Name}
}

// durations are of requests that take from a millisecond to minutes.
func durations() []float64 { return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60} }

// What the store is doing.
var (
	BuildInfo = declare(Metric{
		Name: "system_s3_build_info", Kind: Gauge, Labels: []string{"component", "version", "goversion"},
		Help: "Always 1; the labels tell which version runs.", Sources: []Source{Gateway, Controller},
	})
	Condition = declare(Metric{
		Name: "system_s3_condition", Kind: Gauge, Labels: []string{"type", "status", "reason"},
		Help: "Always 1: a condition of Module/system-s3 as it is now.", Sources: []Source{Leader},
	})
	PlaneInfo = declare(Metric{
		Name: "system_s3_plane_info", Kind: Gauge, Labels: []string{"plane", "role", "storage_class", "tier"},
		Help: "Always 1: a Garage cluster of the plan. During a move to another StorageClass there are two.", Sources: []Source{Leader},
	})
	PlaneReplicas = declare(Metric{
		Name: "system_s3_plane_replicas", Kind: Gauge, Labels: []string{"plane"},
		Help: "Replicas that the plan wants.", Sources: []Source{Leader},
	})
	PlaneAvailable = declare(Metric{
		Name: "system_s3_plane_available", Kind: Gauge, Labels: []string{"plane"},
		Help: "1 while enough replicas are up for reads and writes.", Sources: []Source{Leader},
	})
	PlaneHealthy = declare(Metric{
		Name: "system_s3_plane_healthy", Kind: Gauge, Labels: []string{"plane"},
		Help: "1 while all replicas are connected with each other. It does not tell that all copies are made.", Sources: []Source{Leader},
	})
	PlaneOutdated = declare(Metric{
		Name: "system_s3_plane_outdated_replicas", Kind: Gauge, Labels: []string{"plane"},
		Help: "Replicas that still run an older template: how many restarts a roll has before it.", Sources: []Source{Leader},
	})
	PlaneMoving = declare(Metric{
		Name: "system_s3_plane_moving", Kind: Gauge, Labels: []string{"plane"},
		Help: "1 while a replica is being moved to another node, or waits to be.", Sources: []Source{Leader},
	})
	ReplicaUp = declare(Metric{
		Name: "system_s3_replica_up", Kind: Gauge, Labels: []string{"plane", "replica", "node"},
		Help: "1 while Garage is connected to the replica. The label node is empty while its Pod has none.", Sources: []Source{Leader},
	})
	ReplicaReady = declare(Metric{
		Name: "system_s3_replica_ready", Kind: Gauge, Labels: []string{"plane", "replica"},
		Help: "1 while the replica's Pod is ready.", Sources: []Source{Leader},
	})
	ReplicaVolume = declare(Metric{
		Name: "system_s3_replica_volume_bytes", Kind: Gauge, Labels: []string{"plane", "replica"},
		Help: "Size of the replica's volume as its file system tells it.", Sources: []Source{Leader},
	})
	ReplicaVolumeFree = declare(Metric{
		Name: "system_s3_replica_volume_free_bytes", Kind: Gauge, Labels: []string{"plane", "replica"},
		Help: "What is free of it, in steps of one percent.", Sources: []Source{Leader},
	})
	ReplicaFill = declare(Metric{
		Name: "system_s3_replica_fill_ratio", Kind: Gauge, Labels: []string{"plane", "replica"},
		Help: "How much of what the other replicas hold the replica has, from 0 to 1, while it is filled from them.", Sources: []Source{Leader},
	})
)

// The store's move to another StorageClass; absent while there is none.
var (
	MigrationInfo = declare(Metric{
		Name: "system_s3_migration_info", Kind: Gauge, Labels: []string{"source", "target", "phase"},
		Help: "Always 1 while the store moves from one plane to another: how far it is.", Sources: []Source{Leader},
	})
	MigrationObjects = declare(Metric{
		Name: "system_s3_migration_objects", Kind: Gauge,
		Help: "Objects of the source as counted last.", Sources: []Source{Leader},
	})
	MigrationCopiedObjects = declare(Metric{
		Name: "system_s3_migration_copied_objects", Kind: Gauge,
		Help: "How many of them are copied or verified in this phase, in steps of one percent.", Sources: []Source{Leader},
	})
	MigrationBytes = declare(Metric{
		Name: "system_s3_migration_bytes", Kind: Gauge,
		Help: "Bytes of the source as counted last.", Sources: []Source{Leader},
	})
	MigrationCopiedBytes = declare(Metric{
		Name: "system_s3_migration_copied_bytes", Kind: Gauge,
		Help: "How many of them are copied or verified in this phase, in steps of one percent.", Sources: []Source{Leader},
	})
	MigrationWaiting = declare(Metric{
		Name: "system_s3_migration_waiting", Kind: Gauge, Labels: []string{"source", "target"},
		Help: "1 while the move waits for what MigrationReady names.", Sources: []Source{Leader},
	})
)

// Buckets as the store sees them.
var (
	BucketInfo = declare(Metric{
		Name: "system_s3_bucket_info", Kind: Gauge, Labels: []string{"namespace", "name", "bucket"},
		Help: "Always 1: a SystemBucket and its name in S3, which is the label bucket of the gateways' metrics.", Sources: []Source{Leader},
	})
	BucketCondition = declare(Metric{
		Name: "system_s3_bucket_condition", Kind: Gauge, Labels: []string{"namespace", "name", "type", "status", "reason"},
		Help: "Always 1: a condition of the SystemBucket as it is now.", Sources: []Source{Leader},
	})
	BucketUsed = declare(Metric{
		Name: "system_s3_bucket_used_bytes", Kind: Gauge, Labels: []string{"namespace", "name"},
		Help: "Space taken by the objects, up to a minute old.", Sources: []Source{Leader},
	})
	BucketQuota = declare(Metric{
		Name: "system_s3_bucket_quota_bytes", Kind: Gauge, Labels: []string{"namespace", "name"},
		Help: "Quota by space.", Sources: []Source{Leader},
	})
	BucketObjects = declare(Metric{
		Name: "system_s3_bucket_objects", Kind: Gauge, Labels: []string{"namespace", "name"},
		Help: "Number of objects, up to a minute old.", Sources: []Source{Leader},
	})
	BucketQuotaObjects = declare(Metric{
		Name: "system_s3_bucket_quota_objects", Kind: Gauge, Labels: []string{"namespace", "name"},
		Help: "Quota by number of objects; absent without one.", Sources: []Source{Leader},
	})
)

// What consumers do.
var (
	Requests = declare(Metric{
		Name: "system_s3_requests_total", Kind: Counter, Labels: []string{"bucket", "operation", "code"},
		Help: "Requests that were answered.", Sources: []Source{Gateway},
	})
	ReceivedBytes = declare(Metric{
		Name: "system_s3_received_bytes_total", Kind: Counter, Labels: []string{"bucket", "operation"},
		Help: "Bytes of bodies that clients have sent.", Sources: []Source{Gateway},
	})
	SentBytes = declare(Metric{
		Name: "system_s3_sent_bytes_total", Kind: Counter, Labels: []string{"bucket", "operation"},
		Help: "Bytes of bodies that clients were sent.", Sources: []Source{Gateway},
	})
	RequestDuration = declare(Metric{
		Name: "system_s3_request_duration_seconds", Kind: Histogram, Labels: []string{"operation"}, Buckets: durations(),
		Help: "From the head of a request to the end of its answer, with the bodies.", Sources: []Source{Gateway},
	})
	RequestsRunning = declare(Metric{
		Name: "system_s3_requests_running", Kind: Gauge,
		Help: "Requests that Garage is working on.", Sources: []Source{Gateway},
	})
	WritesRunning = declare(Metric{
		Name: "system_s3_writes_running", Kind: Gauge,
		Help: "Those among them that write.", Sources: []Source{Gateway},
	})
	KeysRefused = declare(Metric{
		Name: "system_s3_keys_refused_total", Kind: Counter, Labels: []string{"reason"},
		Help: "Requests that were refused because of their key.", Sources: []Source{Gateway},
	})
	Exchanges = declare(Metric{
		Name: "system_s3_sts_exchanges_total", Kind: Counter, Labels: []string{"code"},
		Help: "Requests for a key, by what they were answered with: `OK` or STS's error.", Sources: []Source{Controller},
	})
	ExchangeDuration = declare(Metric{
		Name: "system_s3_sts_exchange_duration_seconds", Kind: Histogram, Labels: []string{"result"}, Buckets: durations(),
		Help: "How long they took, by result: `issued`, `refused` or `failed`.", Sources: []Source{Controller},
	})
)

// What access and the gateways rest on.
var (
	KeyRingCreated = declare(Metric{
		Name: "system_s3_key_ring_newest_timestamp_seconds", Kind: Gauge, Labels: []string{"component"},
		Help: "When the newest signing key that the program knows was made.", Sources: []Source{Gateway, Controller},
	})
	CertificateExpiry = declare(Metric{
		Name: "system_s3_certificate_expiry_timestamp_seconds", Kind: Gauge, Labels: []string{"component"},
		Help: "When the serving certificate in use ends.", Sources: []Source{Gateway, Controller},
	})
	RevokedSubjects = declare(Metric{
		Name: "system_s3_revoked_subjects", Kind: Gauge,
		Help: "ServiceAccounts some of whose keys the gateway refuses before their time.", Sources: []Source{Gateway},
	})
	VolumeSize = declare(Metric{
		Name: "system_s3_volume_size_bytes", Kind: Gauge,
		Help: "Size of this replica's volume.", Sources: []Source{Gateway},
	})
	VolumeFree = declare(Metric{
		Name: "system_s3_volume_free_bytes", Kind: Gauge,
		Help: "What is free of it.", Sources: []Source{Gateway},
	})
	VolumeReserve = declare(Metric{
		Name: "system_s3_volume_reserve_bytes", Kind: Gauge,
		Help: "What of it is kept from writes, for deletes.", Sources: []Source{Gateway},
	})
	WritesRefused = declare(Metric{
		Name: "system_s3_writes_refused", Kind: Gauge,
		Help: "1 while writes are refused with `InsufficientStorage` because this or another replica's volume is full.", Sources: []Source{Gateway},
	})
	WritesHeld = declare(Metric{
		Name: "system_s3_writes_held", Kind: Gauge,
		Help: "1 while new writes wait for the switch to another StorageClass.", Sources: []Source{Gateway},
	})
)
