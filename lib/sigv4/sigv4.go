// Package sigv4 verifies AWS Signature Version 4 in every form that S3 clients use and signs requests anew for Garage:
// Authorization header, presigned URL, POST policy form; bodies with one digest, with none, and in signed or unsigned
// chunks with or without trailers. Bodies are streams throughout: memory is bounded by one chunk.
package sigv4

import (
	"net/http"
	"net/url"
	"time"

	"github.com/deckhouse/system-s3/lib/access"
)

// Form is how a request carried its signature.
type Form uint8

// The forms.
const (
	FormHeader Form = iota + 1
	FormPresigned
	FormPost
)

// Payload is what a request says about its body, by its x-amz-content-sha256.
type Payload uint8

// The payload modes.
const (
	PayloadHashed          Payload = iota + 1 // 64 hexadecimal characters, for Garage to check
	PayloadUnsigned                           // UNSIGNED-PAYLOAD
	PayloadSigned                             // STREAMING-AWS4-HMAC-SHA256-PAYLOAD
	PayloadSignedTrailer                      // STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER
	PayloadUnsignedTrailer                    // STREAMING-UNSIGNED-PAYLOAD-TRAILER
)

// Identity is what the signature proves.
type Identity struct {
	AccessKeyID  string
	SessionToken string // as it was sent, "" when it was not; the caller checks it (access.Ring.VerifyToken)
	Form         Form
	Payload      Payload
}

// Lookup returns the secret of an access key id, or the error to answer with (an access.Error).
type Lookup func(accessKeyID string) (secret string, err error)

// Verifier verifies requests. It is safe for concurrent use if Lookup is.
type Verifier struct {
	Domains []string // hosts, in lower case, whose subdomains are buckets
	Lookup  Lookup

	keys scopeKeys
}

// Verified is a request whose head is proven and whose body proves itself while it is read. Everything that only served
// the signature is gone from Query and Header; what a presigned URL carried in place of headers (x-amz-meta-...) has
// become headers; a POST form has become a PUT with nothing but what its policy allowed.
type Verified struct {
	Identity

	Method string
	Bucket string
	Key    string
	Query  url.Values
	Header http.Header
	Body   *Body
	Post   *Post // how to answer a POST form; nil for any other request

	payloadHash string // the x-amz-content-sha256 of PayloadHashed
}

// Post is how the sender of a POST form wants to be answered.
type Post struct {
	Redirect string // success_action_redirect, "" when there is none
	Status   int    // success_action_status: 200, 201, or 204 for everything else
}

// Request is the request as access.Classify and access.Decide take it.
func (v *Verified) Request() access.Request {
	return access.Request{Method: v.Method, Bucket: v.Bucket, Key: v.Key, Query: v.Query, Header: v.Header}
}

// Verify checks the head of a request at the moment now. Of the body it reads nothing, except the fields of a POST form
// that precede the file. The request must be as the server received it: Host, RequestURI and headers untouched. The
// error is an access.Error or wraps one; an unsigned request is AccessDenied. The request itself is not changed.
func (v *Verifier) Verify(r *http.Request, now time.Time) (*Verified, error) {
	path, query, err := target(r)
	if err != nil {
		return nil, err
	}
	bucket, key, err := access.Locate(r.Host, path.decoded, v.Domains)
	if err != nil {
		return nil, err
	}
	form, err := formOf(r, query)
	if err != nil {
		return nil, err
	}
	in := &incoming{Request: r, path: path, query: query, bucket: bucket, key: key, now: now}
	switch form {
	case FormPost:
		return v.verifyPost(in)
	case FormPresigned:
		return v.verifyPresigned(in)
	case FormHeader:
		return v.verifyHeader(in)
	}
	return nil, access.ErrDenied
}

// incoming is a request with what was read from its target.
type incoming struct {
	*http.Request

	path   uriPath
	query  pairs
	bucket string
	key    string
	now    time.Time
}

// formOf finds the one form of the signature; 0 is an unsigned request.
func formOf(r *http.Request, query pairs) (Form, error) {
	presigned := query.hasAny(paramAlgorithm, paramSignature, paramCredential)
	header := len(r.Header.Values(headerAuthorization)) > 0
	switch {
	case presigned && header:
		return 0, access.ErrInvalidArgument.With("Only one auth mechanism allowed")
	case presigned:
		return FormPresigned, nil
	case header:
		return FormHeader, nil
	case query.hasAny("AWSAccessKeyId", "Signature"):
		return 0, errMechanism
	case IsForm(r):
		return FormPost, nil
	}
	return 0, nil
}
