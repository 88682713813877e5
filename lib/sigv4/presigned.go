package sigv4

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/deckhouse/system-s3/lib/access"
)

const (
	paramAlgorithm  = "X-Amz-Algorithm"
	paramCredential = "X-Amz-Credential" //nolint:gosec // the name of a parameter
	paramDate       = "X-Amz-Date"
	paramExpires    = "X-Amz-Expires"
	paramSigned     = "X-Amz-SignedHeaders"
	paramSignature  = "X-Amz-Signature"

	maxExpires = 7 * 24 * time.Hour
)

// parsePresigned reads the signature of a presigned URL and how long it lives. The error is ErrAuthQuery.
func parsePresigned(query pairs) (authorization, time.Duration, error) {
	values := map[string]string{}
	for _, name := range []string{paramAlgorithm, paramCredential, paramDate, paramExpires, paramSigned, paramSignature} {
		value, ok := query.one(name)
		if !ok || value == "" {
			return authorization{}, 0, access.ErrAuthQuery.With("Query-string authentication version 4 requires, each once, the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.")
		}
		values[name] = value
	}
	if values[paramAlgorithm] != algorithm {
		return authorization{}, 0, access.ErrAuthQuery.With(`X-Amz-Algorithm only supports "AWS4-HMAC-SHA256"`)
	}
	auth, err := newAuthorization(values[paramCredential], values[paramSigned], values[paramSignature])
	if err != nil {
		return authorization{}, 0, access.ErrAuthQuery.With(err.Error())
	}
	auth.time, err = time.Parse(timeFormat, values[paramDate])
	if err != nil {
		return authorization{}, 0, access.ErrAuthQuery.With(`X-Amz-Date must be in the ISO8601 Long Format "yyyyMMdd'T'HHmmss'Z'"`)
	}
	seconds, err := strconv.ParseUint(values[paramExpires], 10, 31)
	expires := time.Duration(seconds) * time.Second
	if err != nil || expires < time.Second || expires > maxExpires {
		return authorization{}, 0, access.ErrAuthQuery.With("X-Amz-Expires must be a number of seconds from 1 to 604800")
	}
	return auth, expires, nil
}

// verifyPresigned checks a request with its signature in the query.
func (v *Verifier) verifyPresigned(in *incoming) (*Verified, error) {
	auth, expires, err := parsePresigned(in.query)
	if err != nil {
		return nil, err
	}
	if err := auth.checkScope(access.ErrAuthQuery); err != nil {
		return nil, err
	}
	if err := auth.checkSigned(in.Header, access.ErrAuthQuery); err != nil {
		return nil, err
	}
	switch age := in.now.Sub(auth.time); {
	case age < -skew:
		return nil, access.ErrDenied.With("Request is not valid yet")
	case age >= expires:
		return nil, access.ErrDenied.With("Request has expired")
	}
	hash, err := in.presignedHash()
	if err != nil {
		return nil, err
	}
	proof, err := v.prove(in, auth, hash)
	if err != nil {
		return nil, err
	}
	return in.verified(FormPresigned, proof, hash)
}

// presignedHash is what a presigned URL says about the body: nothing, unless it was signed with a hash.
func (in *incoming) presignedHash() (string, error) {
	hash, err := single(in.Header, headerSHA256)
	if err != nil {
		return "", err
	}
	for _, q := range in.query {
		if !strings.EqualFold(q.name, headerSHA256) {
			continue
		}
		if hash != "" && hash != q.value {
			return "", access.ErrInvalidRequest.With("Conflicting values of x-amz-content-sha256 in query and headers")
		}
		hash = q.value
	}
	if hash == "" {
		return unsignedPayload, nil
	}
	return hash, nil
}

// hoist splits the query of a presigned URL into the parameters of the operation and those that stand in for headers,
// which must not contradict a header.
func hoist(query pairs, header http.Header) (url.Values, error) {
	auth := []string{paramAlgorithm, paramCredential, paramDate, paramExpires, paramSigned, paramSignature}
	values := url.Values{}
	for _, q := range query {
		switch {
		case slices.Contains(auth, q.name):
		case !strings.HasPrefix(strings.ToLower(q.name), "x-amz-"):
			values[q.name] = append(values[q.name], q.value)
		case !httpguts.ValidHeaderFieldName(q.name) || !httpguts.ValidHeaderFieldValue(q.value):
			return nil, access.ErrInvalidArgument.With("A query parameter is not fit for the header it stands for.")
		default:
			if present := header.Values(q.name); len(present) > 0 && !slices.Equal(present, []string{q.value}) {
				return nil, access.ErrInvalidRequest.With("Conflicting values in query and headers: " + printable(q.name))
			}
			header.Set(q.name, q.value)
		}
	}
	return values, nil
}
