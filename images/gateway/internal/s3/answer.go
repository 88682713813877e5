package s3

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"strings"

	"github.com/deckhouse/system-s3/lib/access"
)

const (
	namespace    = "http://s3.amazonaws.com/doc/2006-03-01/"
	schemaURI    = "http://www.w3.org/2001/XMLSchema-instance"
	ownerID      = "000000000000"
	ownerName    = "system-s3"
	bucketOrigin = "1970-01-01T00:00:00.000Z"
)

type owner struct {
	ID          string
	DisplayName string
}

func theOwner() owner { return owner{ID: ownerID, DisplayName: ownerName} }

type bucketEntry struct {
	Name string
	// CreationDate is not known here, and the aws CLI fails without one.
	CreationDate string
}

type listBuckets struct {
	XMLName xml.Name      `xml:"ListAllMyBucketsResult"`
	Xmlns   string        `xml:"xmlns,attr"`
	Owner   owner         `xml:"Owner"`
	Buckets []bucketEntry `xml:"Buckets>Bucket"`
}

type locationConstraint struct {
	XMLName xml.Name `xml:"LocationConstraint"`
	Xmlns   string   `xml:"xmlns,attr"`
	Region  string   `xml:",chardata"`
}

type versioningConfiguration struct {
	XMLName xml.Name `xml:"VersioningConfiguration"`
	Xmlns   string   `xml:"xmlns,attr"`
}

// ownershipControls is what AWS says of a bucket whose ACLs mean nothing.
type ownershipControls struct {
	XMLName         xml.Name `xml:"OwnershipControls"`
	Xmlns           string   `xml:"xmlns,attr"`
	ObjectOwnership string   `xml:"Rule>ObjectOwnership"`
}

type tagging struct {
	XMLName xml.Name `xml:"Tagging"`
	Xmlns   string   `xml:"xmlns,attr"`
	TagSet  struct{} `xml:"TagSet"`
}

type grantee struct {
	Schema      string `xml:"xmlns:xsi,attr"`
	Type        string `xml:"xsi:type,attr"`
	ID          string
	DisplayName string
}

type grant struct {
	Grantee    grantee
	Permission string
}

type accessControlPolicy struct {
	XMLName xml.Name `xml:"AccessControlPolicy"`
	Xmlns   string   `xml:"xmlns,attr"`
	Owner   owner    `xml:"Owner"`
	Grants  []grant  `xml:"AccessControlList>Grant"`
}

// answer answers a harmless operation as AWS would for a bucket that was never changed.
func (x *exchange) answer(op access.Operation) error {
	switch op.Name {
	case "ListBuckets":
		return x.listBuckets(op)
	case "ListObjects", "ListObjectsV2":
		x.writeXML(http.StatusOK, x.emptyList(op))
	case "GetBucketLocation":
		x.writeXML(http.StatusOK, locationConstraint{Xmlns: namespace, Region: x.handler.Region})
	case "GetBucketOwnershipControls":
		x.writeXML(http.StatusOK, ownershipControls{Xmlns: namespace, ObjectOwnership: "BucketOwnerEnforced"})
	case "GetBucketVersioning":
		x.writeXML(http.StatusOK, versioningConfiguration{Xmlns: namespace})
	case "GetBucketAcl", "GetObjectAcl":
		x.writeXML(http.StatusOK, privateACL())
	case "GetObjectTagging":
		x.writeXML(http.StatusOK, tagging{Xmlns: namespace})
	case "PutBucketAcl", "PutObjectAcl":
		x.out.WriteHeader(http.StatusOK)
	default:
		return access.ErrNotImplemented
	}
	return nil
}

// listBuckets answers the one bucket of the key. The key itself carries only a digest of the bucket's name; the session
// token carries the name.
func (x *exchange) listBuckets(op access.Operation) error {
	if x.caller.session == nil {
		return access.ErrDenied.With("Buckets are listed only for requests with the session token of the key: it names the bucket.")
	}
	list := listBuckets{Xmlns: namespace, Owner: theOwner()}
	if bucket := x.caller.session.Bucket; strings.HasPrefix(bucket, op.Query["prefix"]) {
		list.Buckets = append(list.Buckets, bucketEntry{Name: bucket, CreationDate: bucketOrigin})
	}
	x.writeXML(http.StatusOK, list)
	return nil
}

// listObjects is a list with nothing in it. Pointers are what only one of the two versions has.
type listObjects struct {
	XMLName      xml.Name `xml:"ListBucketResult"`
	Xmlns        string   `xml:"xmlns,attr"`
	Name         string
	Prefix       string
	Marker       *string
	StartAfter   string `xml:",omitempty"`
	Token        string `xml:"ContinuationToken,omitempty"`
	Delimiter    string `xml:",omitempty"`
	EncodingType string `xml:",omitempty"`
	KeyCount     *int
	MaxKeys      int
	IsTruncated  bool
}

// emptyList is the answer to who asks for no key at all.
func (x *exchange) emptyList(op access.Operation) listObjects {
	encoded := func(name string) string {
		if op.Query["encoding-type"] == "" {
			return op.Query[name]
		}
		return strings.ReplaceAll(url.QueryEscape(op.Query[name]), "%2F", "/")
	}
	list := listObjects{
		Xmlns: namespace, Name: x.verified.Bucket, Prefix: encoded("prefix"), StartAfter: encoded("start-after"),
		Delimiter: encoded("delimiter"), EncodingType: op.Query["encoding-type"], Token: op.Query["continuation-token"],
	}
	if op.Name == "ListObjects" {
		marker := encoded("marker")
		list.Marker = &marker
	} else {
		list.KeyCount = new(int)
	}
	return list
}

func privateACL() accessControlPolicy {
	return accessControlPolicy{
		Xmlns: namespace, Owner: theOwner(),
		Grants: []grant{{
			Grantee:    grantee{Schema: schemaURI, Type: "CanonicalUser", ID: ownerID, DisplayName: ownerName},
			Permission: "FULL_CONTROL",
		}},
	}
}

type postResponse struct {
	XMLName  xml.Name `xml:"PostResponse"`
	Location string
	Bucket   string
	Key      string
	ETag     string
}

// answerPost answers a POST form, which has become a PUT for Garage, as its sender wanted to be answered.
func (x *exchange) answerPost(response *http.Response) error {
	v, etag := x.verified, response.Header.Get("ETag")
	// Keys may look like anything, so the path is put together without cleaning it.
	path := strings.TrimSuffix(x.request.URL.Path, "/") + "/" + v.Key
	object := (&url.URL{Scheme: "https", Host: x.request.Host, Path: path}).String()
	header := x.out.Header()
	header.Set("ETag", etag)
	if target, err := url.Parse(v.Post.Redirect); err == nil && v.Post.Redirect != "" {
		query := target.Query()
		query.Set("bucket", v.Bucket)
		query.Set("key", v.Key)
		query.Set("etag", etag)
		target.RawQuery = query.Encode()
		header.Set("Location", target.String())
		x.out.WriteHeader(http.StatusSeeOther)
		return nil
	}
	header.Set("Location", object)
	switch v.Post.Status {
	case http.StatusOK:
		x.out.WriteHeader(http.StatusOK)
	case http.StatusCreated:
		x.writeXML(http.StatusCreated, postResponse{Location: object, Bucket: v.Bucket, Key: v.Key, ETag: etag})
	default:
		x.out.WriteHeader(http.StatusNoContent)
	}
	return nil
}
