package access

// target is what chooses an operation, except for the copy source, which is a header.
type target struct {
	method  string
	level   level
	keyword string
}

// route is what is known about an operation before its headers and parameters are looked at.
type route struct {
	name   string
	kind   Kind
	need   Permission
	params []string
	err    Error // of a refusal
}

func pass(name string, need Permission, params ...string) route {
	return route{name: name, kind: Pass, need: need, params: params}
}

func answer(name string, need Permission, params ...string) route {
	return route{name: name, kind: Answer, need: need, params: params}
}

func refuse(name string, err Error) route { return route{name: name, err: err} }

// absent is a configuration that a bucket never has: reading it is answered as for a bucket that was never given one.
func absent(name, code, message string) route {
	return refuse(name, Error{Code: code, Status: statusNotFound, Message: message})
}

const (
	get    = "GET"
	head   = "HEAD"
	put    = "PUT"
	post   = "POST"
	remove = "DELETE"
)

var overrides = []string{
	"response-cache-control", "response-content-disposition", "response-content-encoding", "response-content-language",
	"response-content-type", "response-expires",
}

// routes is every operation that Garage has for consumers, and the harmless ones that it has not.
var routes = map[target]route{
	{get, service, ""}: answer("ListBuckets", 0, "prefix", "max-buckets", "continuation-token", "bucket-region"),

	{head, bucket, ""}:        pass("HeadBucket", 0),
	{get, bucket, ""}:         pass("ListObjects", Read, "prefix", "delimiter", "marker", "max-keys", "encoding-type"),
	{get, bucket, listType}:   pass("ListObjectsV2", Read, "prefix", "delimiter", "start-after", "continuation-token", "max-keys", "encoding-type", "fetch-owner"),
	{get, bucket, "uploads"}:  pass("ListMultipartUploads", Read, "prefix", "delimiter", "key-marker", "upload-id-marker", "max-uploads", "encoding-type"),
	{post, bucket, "delete"}:  pass("DeleteObjects", Write),
	{get, bucket, "location"}: answer("GetBucketLocation", 0),
	{get, bucket, "acl"}:      answer("GetBucketAcl", 0),
	{put, bucket, "acl"}:      answer("PutBucketAcl", Write),

	{get, bucket, "versioning"}:        answer("GetBucketVersioning", 0),
	{get, bucket, "ownershipControls"}: answer("GetBucketOwnershipControls", 0),

	{get, object, ""}:          pass("GetObject", Read, append([]string{partNumber, versionID}, overrides...)...),
	{head, object, ""}:         pass("HeadObject", Read, append([]string{partNumber, versionID}, overrides...)...),
	{put, object, ""}:          pass("PutObject", Write),
	{remove, object, ""}:       pass("DeleteObject", Write, versionID),
	{post, object, "uploads"}:  pass("CreateMultipartUpload", Write),
	{put, object, uploadID}:    pass("UploadPart", Write, partNumber),
	{get, object, uploadID}:    pass("ListParts", 0, "max-parts", "part-number-marker", "encoding-type"),
	{post, object, uploadID}:   pass("CompleteMultipartUpload", Write),
	{remove, object, uploadID}: pass("AbortMultipartUpload", Write),
	{get, object, "acl"}:       answer("GetObjectAcl", Read, versionID),
	{put, object, "acl"}:       answer("PutObjectAcl", Write, versionID),
	{get, object, "tagging"}:   answer("GetObjectTagging", Read, versionID),
}

// forbidden is the operations that are refused with more than NotImplemented: what a consumer must not change, and
// configurations that a bucket never has.
var forbidden = map[target]route{
	{put, bucket, ""}:             refuse("CreateBucket", ErrBucketOwned),
	{remove, bucket, ""}:          refuse("DeleteBucket", owned("The bucket is deleted")),
	{put, bucket, "lifecycle"}:    refuse("PutBucketLifecycleConfiguration", owned("Lifecycle rules are set")),
	{remove, bucket, "lifecycle"}: refuse("DeleteBucketLifecycle", owned("Lifecycle rules are set")),
	{put, bucket, "cors"}:         refuse("PutBucketCors", owned("CORS rules are set")),
	{remove, bucket, "cors"}:      refuse("DeleteBucketCors", owned("CORS rules are set")),
	{put, bucket, "website"}:      refuse("PutBucketWebsite", owned("Websites are set")),
	{remove, bucket, "website"}:   refuse("DeleteBucketWebsite", owned("Websites are set")),

	{get, bucket, "lifecycle"}:         absent("GetBucketLifecycleConfiguration", "NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist."),
	{get, bucket, "cors"}:              absent("GetBucketCors", "NoSuchCORSConfiguration", "The CORS configuration does not exist."),
	{get, bucket, "website"}:           absent("GetBucketWebsite", "NoSuchWebsiteConfiguration", "The specified bucket does not have a website configuration."),
	{get, bucket, "policy"}:            absent("GetBucketPolicy", "NoSuchBucketPolicy", "The bucket policy does not exist."),
	{get, bucket, "policyStatus"}:      absent("GetBucketPolicyStatus", "NoSuchBucketPolicy", "The bucket policy does not exist."),
	{get, bucket, "tagging"}:           absent("GetBucketTagging", "NoSuchTagSet", "The TagSet does not exist."),
	{get, bucket, "encryption"}:        absent("GetBucketEncryption", "ServerSideEncryptionConfigurationNotFoundError", "The server side encryption configuration was not found."),
	{get, bucket, "replication"}:       absent("GetBucketReplication", "ReplicationConfigurationNotFoundError", "The replication configuration was not found."),
	{get, bucket, "object-lock"}:       absent("GetObjectLockConfiguration", "ObjectLockConfigurationNotFoundError", "Object Lock configuration does not exist for this bucket."),
	{get, bucket, "publicAccessBlock"}: absent("GetPublicAccessBlock", "NoSuchPublicAccessBlockConfiguration", "The public access block configuration was not found."),
	{get, object, "retention"}:         refuse("GetObjectRetention", ErrNoLock),
	{put, object, "retention"}:         refuse("PutObjectRetention", ErrNoLock),
	{get, object, "legal-hold"}:        refuse("GetObjectLegalHold", ErrNoLock),
	{put, object, "legal-hold"}:        refuse("PutObjectLegalHold", ErrNoLock),
}

func owned(what string) Error {
	return ErrDenied.With(what + " by the owner of the SystemBucket, not through S3.")
}

func lookup(t target) (route, bool) {
	if r, ok := routes[t]; ok {
		return r, true
	}
	r, ok := forbidden[t]
	return r, ok
}

// isKeyword tells whether a query parameter chooses the operation.
func isKeyword(name string) bool {
	switch name {
	case "accelerate", "acl", "analytics", "attributes", "cors", "delete", "encryption", "intelligent-tiering",
		"inventory", "legal-hold", "lifecycle", listType, "location", "logging", "metadataConfiguration", "metadataTable",
		"metrics", "notification", "object-lock", "ownershipControls", "policy", "policyStatus", "publicAccessBlock",
		"renameObject", "replication", "requestPayment", "restore", "retention", "select", "session", "tagging", "torrent",
		uploadID, "uploads", "versioning", "versions", "website":
		return true
	}
	return false
}
