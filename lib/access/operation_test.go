package access

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	mine    = "d8-demo-logs-abcdefghijkl"
	foreign = "d8-other-logs-abcdefghijk"
)

// query makes a query of `name=value` words.
func query(words ...string) map[string][]string {
	values := map[string][]string{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		values[name] = append(values[name], value)
	}
	return values
}

func onBucket(method string, words ...string) Request {
	return Request{Method: method, Bucket: mine, Query: query(words...)}
}

func onObject(method string, words ...string) Request {
	return Request{Method: method, Bucket: mine, Key: "a/b", Query: query(words...)}
}

func (r Request) with(words ...string) Request {
	r.Header = map[string][]string{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, ": ")
		r.Header[name] = append(r.Header[name], value)
	}
	return r
}

func TestClassifyKnows(t *testing.T) {
	cases := map[string]struct {
		request Request
		name    string
		kind    Kind
		need    Permission
	}{
		"list buckets":           {Request{Method: "GET"}, "ListBuckets", Answer, 0},
		"list buckets, paged":    {Request{Method: "GET", Query: query("max-buckets=10", "x-id=ListBuckets")}, "ListBuckets", Answer, 0},
		"head bucket":            {onBucket("HEAD"), "HeadBucket", Pass, 0},
		"list v1":                {onBucket("GET", "prefix=a", "delimiter=/", "marker=x", "max-keys=10", "encoding-type=url"), "ListObjects", Pass, Read},
		"list nothing":           {onBucket("GET", "max-keys=0"), "ListObjects", Answer, Read},
		"list nothing v2":        {onBucket("GET", "list-type=2", "max-keys=00", "prefix=a"), "ListObjectsV2", Answer, Read},
		"list v2":                {onBucket("GET", "list-type=2", "prefix=", "delimiter=", "continuation-token=x", "start-after=y", "fetch-owner=true"), "ListObjectsV2", Pass, Read},
		"ownership":              {onBucket("GET", "ownershipControls"), "GetBucketOwnershipControls", Answer, 0},
		"delete, bypassing":      {onObject("DELETE").with("X-Amz-Bypass-Governance-Retention: true"), "DeleteObject", Pass, Write},
		"list uploads":           {onBucket("GET", "uploads", "prefix=a", "key-marker=k", "upload-id-marker=u", "max-uploads=5"), "ListMultipartUploads", Pass, Read},
		"delete many":            {onBucket("POST", "delete", "x-id=DeleteObjects"), "DeleteObjects", Pass, Write},
		"location":               {onBucket("GET", "location"), "GetBucketLocation", Answer, 0},
		"versioning":             {onBucket("GET", "versioning"), "GetBucketVersioning", Answer, 0},
		"bucket acl":             {onBucket("GET", "acl"), "GetBucketAcl", Answer, 0},
		"private bucket acl":     {onBucket("PUT", "acl").with("X-Amz-Acl: private"), "PutBucketAcl", Answer, Write},
		"get":                    {onObject("GET"), "GetObject", Pass, Read},
		"get a range":            {onObject("GET").with("Range: bytes=0-1", "If-Match: x", "If-None-Match: y"), "GetObject", Pass, Read},
		"get a part":             {onObject("GET", "partNumber=3"), "GetObject", Pass, Read},
		"get, overridden":        {onObject("GET", "response-content-type=a/b", "response-content-disposition=attachment", "response-expires=x"), "GetObject", Pass, Read},
		"get, presigned":         {onObject("GET", "X-Amz-Algorithm=a", "X-Amz-Credential=c", "X-Amz-Date=d", "X-Amz-Expires=1", "X-Amz-SignedHeaders=host", "X-Amz-Signature=s", "X-Amz-Security-Token=t", "x-id=GetObject"), "GetObject", Pass, Read},
		"get the null version":   {onObject("GET", "versionId=null"), "GetObject", Pass, Read},
		"head":                   {onObject("HEAD").with("X-Amz-Checksum-Mode: ENABLED"), "HeadObject", Pass, Read},
		"put":                    {onObject("PUT", "x-id=PutObject"), "PutObject", Pass, Write},
		"put with all sorts":     {onObject("PUT").with("X-Amz-Meta-A: 1", "Content-Type: t", "X-Amz-Acl: private", "X-Amz-Storage-Class: STANDARD", "X-Amz-Sdk-Checksum-Algorithm: CRC32", "X-Amz-Checksum-Crc32: AAAAAA==", "X-Amz-Trailer: x-amz-checksum-crc32", "X-Amz-Expected-Bucket-Owner: 000000000000"), "PutObject", Pass, Write},
		"put, owner full":        {onObject("PUT").with("X-Amz-Acl: bucket-owner-full-control"), "PutObject", Pass, Write},
		"delete":                 {onObject("DELETE"), "DeleteObject", Pass, Write},
		"delete null version":    {onObject("DELETE", "versionId=null"), "DeleteObject", Pass, Write},
		"create upload":          {onObject("POST", "uploads"), "CreateMultipartUpload", Pass, Write},
		"upload part":            {onObject("PUT", "uploadId=u", "partNumber=1"), "UploadPart", Pass, Write},
		"list parts":             {onObject("GET", "uploadId=u", "max-parts=5", "part-number-marker=3"), "ListParts", Pass, 0},
		"complete upload":        {onObject("POST", "uploadId=u").with("X-Amz-Mp-Object-Size: 5"), "CompleteMultipartUpload", Pass, Write},
		"abort upload":           {onObject("DELETE", "uploadId=u"), "AbortMultipartUpload", Pass, Write},
		"copy":                   {onObject("PUT").with("X-Amz-Copy-Source: " + mine + "/c"), "CopyObject", Pass, ReadWrite},
		"copy with conditions":   {onObject("PUT").with("X-Amz-Copy-Source: /"+mine+"/c", "X-Amz-Copy-Source-If-Match: e", "X-Amz-Metadata-Directive: REPLACE"), "CopyObject", Pass, ReadWrite},
		"copy part":              {onObject("PUT", "uploadId=u", "partNumber=1").with("X-Amz-Copy-Source: "+mine+"/c", "X-Amz-Copy-Source-Range: bytes=0-1"), "UploadPartCopy", Pass, ReadWrite},
		"object acl":             {onObject("GET", "acl"), "GetObjectAcl", Answer, Read},
		"private object acl":     {onObject("PUT", "acl").with("x-amz-acl: private"), "PutObjectAcl", Answer, Write},
		"object tags":            {onObject("GET", "tagging"), "GetObjectTagging", Answer, Read},
		"unsigned header sorts":  {onObject("GET").with("Accept: */*", "Cookie: a", "Authorization: b", "X-Forwarded-For: c", "X-Amzn-Trace-Id: d"), "GetObject", Pass, Read},
		"header in lower case":   {onObject("PUT").with("x-amz-copy-source: " + mine + "/c"), "CopyObject", Pass, ReadWrite},
		"empty tags":             {onObject("PUT").with("X-Amz-Tagging: "), "PutObject", Pass, Write},
		"empty paging of a list": {onBucket("GET", "max-keys=", "encoding-type=", "marker="), "ListObjects", Pass, Read},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op, err := Classify(c.request)
			require.NoError(t, err)
			assert.Equal(t, c.name, op.Name)
			assert.Equal(t, c.kind, op.Kind)
			assert.Equal(t, c.need, op.Need)
			for param, value := range op.Query {
				assert.False(t, choosesNothing(param), "the signature's parameters do not go on")
				assert.True(t, value != "" || isKeyword(param), "empty values do not go on")
			}
		})
	}
}

func TestClassifyRefuses(t *testing.T) {
	cases := map[string]struct {
		request Request
		want    Error
		reason  string
	}{
		"create bucket":         {onBucket("PUT"), ErrBucketOwned, "clients that make sure of their bucket go on"},
		"delete bucket":         {onBucket("DELETE"), ErrDenied, "the SystemBucket's owner decides"},
		"put lifecycle":         {onBucket("PUT", "lifecycle"), ErrDenied, "Garage would obey"},
		"put cors":              {onBucket("PUT", "cors"), ErrDenied, "Garage would obey"},
		"put website":           {onBucket("PUT", "website"), ErrDenied, "Garage would obey"},
		"put policy":            {onBucket("PUT", "policy"), ErrNotImplemented, "not there"},
		"put versioning":        {onBucket("PUT", "versioning"), ErrNotImplemented, "not there"},
		"put object lock":       {onBucket("PUT", "object-lock"), ErrNotImplemented, "not there"},
		"put encryption":        {onBucket("PUT", "encryption"), ErrNotImplemented, "not there"},
		"put tags":              {onBucket("PUT", "tagging"), ErrNotImplemented, "not there"},
		"put object tags":       {onObject("PUT", "tagging"), ErrNotImplemented, "would write an object in Garage's stead"},
		"put retention":         {onObject("PUT", "retention"), ErrNoLock, "as AWS says it of a bucket without Object Lock"},
		"put legal hold":        {onObject("PUT", "legal-hold"), ErrNoLock, "as AWS says it of a bucket without Object Lock"},
		"get retention":         {onObject("GET", "retention"), ErrNoLock, "as AWS says it of a bucket without Object Lock"},
		"get legal hold":        {onObject("GET", "legal-hold"), ErrNoLock, "as AWS says it of a bucket without Object Lock"},
		"get attributes":        {onObject("GET", "attributes"), ErrNotImplemented, "Garage answers 500"},
		"list versions":         {onBucket("GET", "versions"), ErrNotImplemented, "not there"},
		"select":                {onObject("POST", "select", "select-type=2"), ErrNotImplemented, "not there"},
		"restore":               {onObject("POST", "restore"), ErrNotImplemented, "not there"},
		"torrent":               {onObject("GET", "torrent"), ErrNotImplemented, "not there"},
		"rename":                {onObject("PUT", "renameObject").with("X-Amz-Rename-Source: x"), ErrNotImplemented, "not there"},
		"append":                {onObject("PUT").with("X-Amz-Write-Offset-Bytes: 5"), ErrNotImplemented, "Garage would overwrite"},
		"put acl, no header":    {onObject("PUT", "acl"), ErrACL, "the body could say anything"},
		"public bucket acl":     {onBucket("PUT", "acl").with("X-Amz-Acl: public-read"), ErrACL, "not private"},
		"public object":         {onObject("PUT").with("X-Amz-Acl: public-read"), ErrACL, "ignored by Garage"},
		"grant":                 {onObject("PUT").with("X-Amz-Grant-Read: id=x"), ErrACL, "ignored by Garage"},
		"SSE-C":                 {onObject("PUT").with("X-Amz-Server-Side-Encryption-Customer-Algorithm: AES256"), ErrNotImplemented, "a key the platform does not keep"},
		"SSE-C on get":          {onObject("GET").with("X-Amz-Server-Side-Encryption-Customer-Key: k"), ErrNotImplemented, "as above"},
		"SSE-C on copy source":  {onObject("PUT").with("X-Amz-Copy-Source: "+mine+"/c", "X-Amz-Copy-Source-Server-Side-Encryption-Customer-Key: k"), ErrNotImplemented, "as above"},
		"SSE-KMS":               {onObject("PUT").with("X-Amz-Server-Side-Encryption: aws:kms"), ErrNotImplemented, "ignored by Garage"},
		"SSE-S3":                {onObject("PUT").with("X-Amz-Server-Side-Encryption: AES256"), ErrNotImplemented, "ignored by Garage"},
		"tags with an object":   {onObject("PUT").with("X-Amz-Tagging: a=b"), ErrNotImplemented, "ignored by Garage"},
		"replaced tags":         {onObject("PUT").with("X-Amz-Copy-Source: "+mine+"/c", "X-Amz-Tagging-Directive: REPLACE"), ErrNotImplemented, "ignored by Garage"},
		"lock with an object":   {onObject("PUT").with("X-Amz-Object-Lock-Mode: COMPLIANCE"), ErrInvalidRequest, "ignored by Garage"},
		"cold storage":          {onObject("PUT").with("X-Amz-Storage-Class: GLACIER"), ErrStorageClass, "ignored by Garage"},
		"another owner":         {onObject("GET").with("X-Amz-Expected-Bucket-Owner: 123456789012"), ErrDenied, "what the header is for"},
		"unknown checksum":      {onObject("PUT").with("X-Amz-Checksum-Xxhash3: AA=="), ErrNotImplemented, "nobody would check it"},
		"unknown amz header":    {onObject("GET").with("X-Amz-Whatever: 1"), ErrNotImplemented, "who knows what it means"},
		"put if absent":         {onObject("PUT").with("If-None-Match: *"), ErrNotImplemented, "Garage writes anyway"},
		"put if same":           {onObject("PUT").with("If-Match: e"), ErrNotImplemented, "Garage writes anyway"},
		"copy if absent":        {onObject("PUT").with("X-Amz-Copy-Source: "+mine+"/c", "If-None-Match: *"), ErrNotImplemented, "Garage writes anyway"},
		"complete if absent":    {onObject("POST", "uploadId=u").with("if-none-match: *"), ErrNotImplemented, "Garage writes anyway"},
		"delete if same":        {onObject("DELETE").with("If-Match: e"), ErrNotImplemented, "Garage deletes anyway"},
		"delete if of size":     {onObject("DELETE").with("X-Amz-If-Match-Size: 1"), ErrNotImplemented, "Garage deletes anyway"},
		"a version":             {onObject("GET", "versionId=abc"), ErrNoSuchVersion, "Garage would give the current one"},
		"delete a version":      {onObject("DELETE", "versionId=abc"), ErrNoSuchVersion, "Garage would delete the current one"},
		"abort without id":      {onObject("DELETE", "uploadId="), ErrNoSuchUpload, "Garage would delete the object"},
		"list parts without id": {onObject("GET", "uploadId="), ErrNoSuchUpload, "Garage would get the object"},
		"part without id":       {onObject("PUT", "partNumber=1"), ErrNotImplemented, "Garage would write an object"},
		"part without number":   {onObject("PUT", "uploadId=u"), ErrInvalidArgument, "Garage would write an object"},
		"empty part number":     {onObject("PUT", "uploadId=u", "partNumber="), ErrInvalidArgument, "Garage would write an object"},
		"part 0":                {onObject("PUT", "uploadId=u", "partNumber=0"), ErrInvalidArgument, "1 to 10000"},
		"part 10001":            {onObject("PUT", "uploadId=u", "partNumber=10001"), ErrInvalidArgument, "1 to 10000"},
		"part one":              {onObject("PUT", "uploadId=u", "partNumber=one"), ErrInvalidArgument, "a number"},
		"list type 1":           {onBucket("GET", "list-type=1"), ErrInvalidArgument, "there is 2"},
		"empty list type":       {onBucket("GET", "list-type="), ErrInvalidArgument, "Garage would list by version 1"},
		"max-keys minus one":    {onBucket("GET", "max-keys=-1"), ErrInvalidArgument, "not a number of keys"},
		"encoding base64":       {onBucket("GET", "encoding-type=base64"), ErrInvalidArgument, "there is url"},
		"two subresources":      {onObject("PUT", "acl", "tagging"), ErrInvalidArgument, "which one?"},
		"acl and upload":        {onObject("PUT", "acl", "uploadId=u").with("X-Amz-Acl: private"), ErrInvalidArgument, "which one?"},
		"a parameter twice":     {onObject("PUT", "uploadId=u", "uploadId=v", "partNumber=1"), ErrInvalidArgument, "two parsers, two values"},
		"unknown parameter":     {onObject("GET", "frobnicate"), ErrNotImplemented, "who knows what it means"},
		"parameter elsewhere":   {onObject("PUT", "response-content-type=a"), ErrNotImplemented, "not of this operation"},
		"copy source on get":    {onObject("GET").with("X-Amz-Copy-Source: " + mine + "/c"), ErrInvalidArgument, "not of this operation"},
		"copy source on upload": {onObject("POST", "uploads").with("X-Amz-Copy-Source: " + mine + "/c"), ErrInvalidArgument, "not of this operation"},
		"two copy sources":      {onObject("PUT").with("X-Amz-Copy-Source: "+mine+"/c", "X-Amz-Copy-Source: "+foreign+"/c"), ErrInvalidArgument, "two parsers, two values"},
		"range of a copy":       {onObject("PUT").with("X-Amz-Copy-Source: "+mine+"/c", "X-Amz-Copy-Source-Range: bytes=0-1"), ErrNotImplemented, "Garage would copy all"},
		"range of nothing":      {onObject("PUT").with("X-Amz-Copy-Source-Range: bytes=0-1"), ErrInvalidArgument, "no source"},
		"post to an object":     {onObject("POST"), ErrMethod, "no such operation"},
		"post to a bucket":      {onBucket("POST"), ErrMethod, "a form has become a PUT before"},
		"put to the service":    {Request{Method: "PUT"}, ErrMethod, "no such operation"},
		"service, subresource":  {Request{Method: "GET", Query: query("acl")}, ErrNotImplemented, "no such operation"},
		"options":               {onObject("OPTIONS"), ErrMethod, "no CORS"},
		"patch":                 {onObject("PATCH"), ErrMethod, "no such method"},
		"lower-case method":     {onObject("get"), ErrMethod, "methods are case-sensitive"},
		"head an acl":           {onObject("HEAD", "acl"), ErrNotImplemented, "Garage would take it for a HEAD of the object"},
		"session":               {onBucket("GET", "session"), ErrNotImplemented, "no directory buckets"},
		"MFA":                   {onObject("DELETE").with("X-Amz-Mfa: 1 2"), ErrNotImplemented, "nobody would check it"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op, err := Classify(c.request)
			require.Equal(t, c.want.Code, codeOf(t, err), c.reason)
			assert.Equal(t, Refuse, op.Kind)
			assert.Nil(t, op.CopySource)
			assert.False(t, op.Writes())
		})
	}
}

func codeOf(t *testing.T, err error) string {
	t.Helper()
	require.Error(t, err)
	var e Error
	require.ErrorAs(t, err, &e, "every refusal is an Error")
	require.NotZero(t, e.Status)
	return e.Code
}

func TestClassifyAnswersForAbsentConfigurations(t *testing.T) {
	for keyword, code := range map[string]string{
		"lifecycle": "NoSuchLifecycleConfiguration", "cors": "NoSuchCORSConfiguration", "website": "NoSuchWebsiteConfiguration",
		"policy": "NoSuchBucketPolicy", "tagging": "NoSuchTagSet", "encryption": "ServerSideEncryptionConfigurationNotFoundError",
		"object-lock": "ObjectLockConfigurationNotFoundError", "publicAccessBlock": "NoSuchPublicAccessBlockConfiguration",
	} {
		_, err := Classify(onBucket("GET", keyword))
		assert.Equal(t, code, codeOf(t, err), "clients take %s for an empty configuration", code)
	}
}

func TestParseCopySource(t *testing.T) {
	cases := map[string]struct {
		value  string
		want   CopySource
		ok     bool
		reason string
	}{
		"plain":             {mine + "/a/b", CopySource{mine, "a/b"}, true, "as SDKs send it"},
		"leading slash":     {"/" + mine + "/a/b", CopySource{mine, "a/b"}, true, "as the documentation writes it"},
		"encoded":           {mine + "/a%20%2B%C3%B6", CopySource{mine, "a +ö"}, true, "percent-encoded"},
		"encoded slash":     {mine + "%2Fa%2Fb", CopySource{mine, "a/b"}, true, "boto encodes nothing, others everything"},
		"encoded leading":   {"%2F" + mine + "/a", CopySource{}, false, "the bucket would be empty, or another one for Garage"},
		"plus":              {mine + "/a+b", CopySource{mine, "a+b"}, true, "as Garage takes it"},
		"null version":      {mine + "/a?versionId=null", CopySource{mine, "a"}, true, "there is no other"},
		"key with slash":    {mine + "//a", CopySource{mine, "/a"}, true, "a key may begin with a slash"},
		"version":           {mine + "/a?versionId=x", CopySource{}, false, "no versions"},
		"other query":       {mine + "/a?x", CopySource{}, false, "not understood"},
		"encoded question":  {mine + "/a%3FversionId=x", CopySource{mine, "a?versionId=x"}, true, "part of the key"},
		"two slashes":       {"//" + mine + "/a", CopySource{}, false, "Garage would drop them all"},
		"no key":            {mine, CopySource{}, false, "an object is copied"},
		"empty key":         {mine + "/", CopySource{}, false, "an object is copied"},
		"no bucket":         {"/a", CopySource{}, false, "an object of a bucket"},
		"empty":             {"", CopySource{}, false, "nothing"},
		"ARN":               {"arn:aws:s3:us-east-1:000000000000:accesspoint/x/object/a", CopySource{}, false, "no access points"},
		"bad escape":        {mine + "/a%2", CopySource{}, false, "not encoded"},
		"bad digits":        {mine + "/a%zz", CopySource{}, false, "not encoded"},
		"not UTF-8":         {mine + "/a%ff", CopySource{}, false, "no key"},
		"encoded twice":     {mine + "/a%252Fb", CopySource{mine, "a%2Fb"}, true, "decoded once"},
		"bucket upper":      {"D8-demo/a", CopySource{}, false, "no such bucket"},
		"bucket with dots":  {"../" + mine + "/a", CopySource{}, false, "no paths"},
		"key of dots":       {mine + "/../" + foreign + "/a", CopySource{mine, "../" + foreign + "/a"}, true, "a key is a key"},
		"overlong key":      {mine + "/" + strings.Repeat("a", 472), CopySource{}, false, "471 at most"},
		"percent in bucket": {"d8%2Ddemo-logs-abcdefghijkl/a", CopySource{mine, "a"}, true, "the same bucket"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseCopySource(c.value)
			assert.Equal(t, c.ok, err == nil, c.reason)
			assert.Equal(t, c.want, got, c.reason)
		})
	}
}

func TestDecide(t *testing.T) {
	claims := func(p Permission) Claims { return Claims{BucketTag: BucketTag(mine), Permission: p} }
	other := onObject("GET")
	other.Bucket = foreign
	otherConfig := onBucket("GET", "policy")
	otherConfig.Bucket = foreign
	create := onBucket("PUT")
	create.Bucket = foreign
	cases := map[string]struct {
		claims  Claims
		request Request
		want    *Error
		reason  string
	}{
		"read":                        {claims(Read), onObject("GET"), nil, "granted"},
		"write":                       {claims(Write), onObject("PUT"), nil, "granted"},
		"read with a write key":       {claims(Write), onObject("GET"), &ErrDenied, "write does not imply read"},
		"list with a write key":       {claims(Write), onBucket("GET"), &ErrDenied, "names are data"},
		"write with a read key":       {claims(Read), onObject("PUT"), &ErrDenied, "read only"},
		"delete with a read key":      {claims(Read), onObject("DELETE"), &ErrDenied, "read only"},
		"delete many, read key":       {claims(Read), onBucket("POST", "delete"), &ErrDenied, "a POST that writes"},
		"abort with a read key":       {claims(Read), onObject("DELETE", "uploadId=u"), &ErrDenied, "read only"},
		"acl with a read key":         {claims(Read), onObject("PUT", "acl").with("X-Amz-Acl: private"), &ErrDenied, "read only"},
		"head bucket, read key":       {claims(Read), onBucket("HEAD"), nil, "any key of the bucket"},
		"head bucket, write key":      {claims(Write), onBucket("HEAD"), nil, "any key of the bucket"},
		"copy":                        {claims(ReadWrite), onObject("PUT").with("X-Amz-Copy-Source: " + mine + "/c"), nil, "granted"},
		"copy with a write key":       {claims(Write), onObject("PUT").with("X-Amz-Copy-Source: " + mine + "/c"), &ErrDenied, "would read through the copy"},
		"part copy with a write key":  {claims(Write), onObject("PUT", "uploadId=u", "partNumber=1").with("X-Amz-Copy-Source: " + mine + "/c"), &ErrDenied, "would read through the copy"},
		"copy from another bucket":    {claims(ReadWrite), onObject("PUT").with("X-Amz-Copy-Source: " + foreign + "/c"), &ErrDenied, "the gateway's own key could read it"},
		"copy, encoded other bucket":  {claims(ReadWrite), onObject("PUT").with("X-Amz-Copy-Source: " + strings.ReplaceAll(foreign, "-", "%2D") + "/c"), &ErrDenied, "as above"},
		"another bucket":              {claims(ReadWrite), other, &ErrDenied, "not the key's"},
		"another bucket's policy":     {claims(ReadWrite), otherConfig, &ErrDenied, "nothing is said about another's bucket"},
		"create another bucket":       {claims(ReadWrite), create, &ErrDenied, "not BucketAlreadyOwnedByYou"},
		"create own bucket":           {claims(ReadWrite), onBucket("PUT"), &ErrBucketOwned, "it is there"},
		"no bucket":                   {claims(Read), Request{Method: "GET"}, nil, "ListBuckets answers from the token"},
		"no permission at all":        {claims(0), onObject("GET"), &ErrDenied, "no such key is issued"},
		"claims of nobody":            {Claims{}, onObject("GET"), &ErrDenied, "the zero Claims opens nothing"},
		"claims of nobody, bucket":    {Claims{}, onBucket("HEAD"), &ErrDenied, "the zero Claims opens nothing"},
		"unknown operation, other's":  {claims(Read), Request{Method: "PATCH", Bucket: foreign}, &ErrDenied, "the bucket first"},
		"unknown operation, own":      {claims(Read), onBucket("PATCH"), &ErrMethod, "then the operation"},
		"parts list with a write key": {claims(Write), onObject("GET", "uploadId=u"), nil, "whoever has the id is the writer"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Decide(c.claims, c.request)
			if c.want == nil {
				require.NoError(t, err, c.reason)
				return
			}
			require.Equal(t, c.want.Code, codeOf(t, err), c.reason)
		})
	}
}

func TestOperationsThatFreeSpace(t *testing.T) {
	for name, r := range map[string]Request{
		"DeleteObject": onObject("DELETE"), "DeleteObjects": onBucket("POST", "delete"), "AbortMultipartUpload": onObject("DELETE", "uploadId=u"),
	} {
		op, err := Classify(r)
		require.NoError(t, err)
		assert.True(t, op.Frees() && op.Writes(), name)
	}
	op, err := Classify(onObject("POST", "uploadId=u"))
	require.NoError(t, err)
	assert.True(t, op.Writes() && !op.Frees(), "completing an upload writes metadata")
}
