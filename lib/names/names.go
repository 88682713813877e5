// Package names holds the words that the parts of system-s3 must agree on: names of objects, labels, ports, hosts and
// the rules that derive one name from another. It decides nothing else and reads nothing.
package names

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
)

// The module and its API.
const (
	Module    = "system-s3"
	Namespace = "d8-system-s3"
	Group     = "storage.deckhouse.io"
	Version   = "v1alpha1"
	Kind      = "SystemBucket"
	Resource  = "systembuckets"
	Finalizer = "storage.deckhouse.io/system-s3"

	// ReadSubresource and WriteSubresource are the virtual subresources of systembuckets that RBAC grants access by.
	ReadSubresource  = "read"
	WriteSubresource = "write"

	// PageSubresource is the virtual subresource of Module/system-s3 that RBAC grants the status page by.
	ModuleGroup     = "deckhouse.io"
	ModuleResource  = "modules"
	PageSubresource = "page"
)

// Labels carried by every object of the module.
const (
	HeritageLabel = "heritage"
	Heritage      = "deckhouse"
	ModuleLabel   = "module"
	AppLabel      = "app"
	PlaneLabel    = "system-s3.deckhouse.io/plane"
)

// RPCTimeoutAnnotation of a Garage Pod is the rpc_timeout_msec that its process runs with.
const RPCTimeoutAnnotation = "system-s3.deckhouse.io/rpc-timeout-msec"

// ContentFile in the root of a replica's volume names the volume's content. An emptied volume gets another name.
const ContentFile = "content"

// Objects in the module's namespace.
const (
	GarageApp            = "garage"
	ControllerApp        = "controller"
	ReleasedApp          = "released-buckets" // the list of buckets whose SystemBuckets nobody holds
	PlanConfigMap        = "plan"
	PlanKey              = "plan.json"
	StateConfigMap       = "data-plane"
	StateKey             = "state.json"
	LiveKeysConfigMap    = "live-keys"
	LiveKeysKey          = "holders.json.gz"
	KeyRingSecret        = "key-ring"
	KeyRingKey           = "ring.json"
	TLSSecret            = "tls"
	CASecret             = "ca"
	CAKey                = "ca.crt"
	S3Service            = "s3"
	GatewayService       = "s3-gateway"
	STSService           = "sts"
	PageService          = "page"
	LeaderLease          = "controller"
	GarageContainer      = "garage"
	GatewayContainer     = "gateway"
	ServingAdminPortName = "https-admin"
	ServingS3PortName    = "https-s3"
)

// Keys of a plane's Secret `garage-<plane>`.
const (
	RPCSecretKey     = "rpc-secret"
	AdminTokenKey    = "admin-token"
	MetricsTokenKey  = "metrics-token"
	SeedKey          = "seed"
	nodeKeyKeyPrefix = "node-key-"
)

// Ports. Garage's S3 and admin listen on loopback only; the gateway is the way in.
const (
	GarageS3Port         = 3900
	GarageRPCPort        = 3901
	GarageAdminPort      = 3903
	GatewayS3Port        = 8443
	GatewayAdminPort     = 8444
	STSPort              = 8443
	PagePort             = 8446
	ControllerProbesPort = 8081
	MetricsPort          = 8445 // of the controller and of gateways
	ServicePort          = 443
)

// What consumers see.
const (
	// Region is a name of our own, though signatures for any region are accepted. For AWS's older regions, us-east-1
	// among them, boto3 and the aws CLI would presign with Signature Version 2.
	Region = "system-s3"
	// GarageRegion is what Garage is configured with and wants in signatures. Only gateways and the controller speak to
	// it. It stays what it was: another one would need every replica to be restarted.
	GarageRegion = "us-east-1"

	Audience = "system-s3"
	S3Host   = S3Service + "." + Namespace + ".svc"
	STSHost  = STSService + "." + Namespace + ".svc"
	PageHost = PageService + "." + Namespace + ".svc"

	S3URL  = "https://" + S3Host
	STSURL = "https://" + STSHost

	// ConsumerDir is where a consumer mounts the projected volume with its token and the CA certificate.
	ConsumerDir       = "/var/run/secrets/system-s3"
	ConsumerTokenFile = ConsumerDir + "/token"
	ConsumerCAFile    = ConsumerDir + "/ca.crt"

	roleARNPrefix = "arn:aws:iam::000000000000:role/"
)

const (
	maxBucketLength = 63 // a DNS label: the bucket is a host name in virtual-host style
	uidHashLength   = 12 // 60 bits: among 5 000 buckets a collision has a probability of about 1e-11
	removedIDLength = 48 // 192 bits of the 256 of an id in Garage
)

// Bucket is the bucket's name in S3, `<namespace>-<name>-<hash of the UID>`: a DNS label of at most 63 characters.
// The UID makes it unique: a SystemBucket made again under the same name is another bucket. An overlong readable part
// is cut, never the hash.
func Bucket(namespace, name, uid string) string {
	sum := sha256.Sum256([]byte(uid))
	hash := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:uidHashLength]
	readable := namespace + "-" + strings.ReplaceAll(name, ".", "-")
	if limit := maxBucketLength - uidHashLength - 1; len(readable) > limit {
		readable = readable[:limit]
	}
	return strings.TrimRight(readable, "-") + "-" + hash
}

// RemovedBucket is the name of a bucket that is being deleted, by its id in Garage. It never is a Bucket: that ends with
// a hash of twelve characters, this with more than that without a dash.
func RemovedBucket(id string) string {
	return "removed-" + id[:min(len(id), removedIDLength)]
}

// RoleARN is the role a consumer asks STS for to use the SystemBucket.
func RoleARN(namespace, bucket string) string {
	return roleARNPrefix + namespace + "/" + bucket
}

// RoleARNPrefix is what every role of this module starts with.
func RoleARNPrefix() string { return roleARNPrefix }

// ConnectionConfigMap is the ConfigMap beside a SystemBucket that carries its connection parameters.
func ConnectionConfigMap(bucket string) string { return bucket + "-s3" }

// GarageObject names the StatefulSet, the headless Service, the Secret and the ConfigMap of a plane.
func GarageObject(plane string) string { return "garage-" + plane }

// PlaneGatewayService is the Service that leads to the gateways of a plane, whether clients are led to it or not.
func PlaneGatewayService(plane string) string { return GatewayService + "-" + plane }

// GaragePod is the Pod of a plane's replica.
func GaragePod(plane string, ordinal int) string {
	return GarageObject(plane) + "-" + strconv.Itoa(ordinal)
}

// GarageClaim is the PersistentVolumeClaim of a plane's replica.
func GarageClaim(plane string, ordinal int) string { return "data-" + GaragePod(plane, ordinal) }

// NodeKeyKey is the key of a replica's Garage identity in the plane's Secret.
func NodeKeyKey(ordinal int) string { return nodeKeyKeyPrefix + strconv.Itoa(ordinal) }

// VirtualHost is the host that addresses a bucket in virtual-host style.
func VirtualHost(bucket string) string { return bucket + "." + S3Host }
