package sigv4

import (
	"crypto/hmac"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/deckhouse/system-s3/lib/access"
)

const (
	headerAuthorization = "Authorization"
	headerDate          = "X-Amz-Date"
	headerSHA256        = "X-Amz-Content-Sha256"
	headerToken         = "X-Amz-Security-Token" //nolint:gosec // the name of a header

	// skew is how far a client's clock may be from ours, either way.
	skew = 15 * time.Minute

	signatureLength = 64 // hexadecimal characters
	maxSigned       = 256
)

var errMechanism = access.ErrInvalidRequest.With("The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.")

// authorization is a parsed signature and what it names.
type authorization struct {
	keyID     string
	scope     scope
	signed    []string // lower-case names of headers, as sent
	signature []byte   // hexadecimal
	time      time.Time
}

// parseAuthorization reads the value of an Authorization header. The error is ErrAuthHeader or errMechanism.
func parseAuthorization(value string) (authorization, error) {
	scheme, rest, _ := strings.Cut(value, " ")
	if scheme != algorithm {
		return authorization{}, errMechanism
	}
	var fields authorizationFields
	for part := range strings.SplitSeq(rest, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || !fields.set(name, value) {
			return authorization{}, access.ErrAuthHeader
		}
	}
	auth, err := newAuthorization(fields.credential, fields.signedHeaders, fields.signature)
	if err != nil {
		return authorization{}, access.ErrAuthHeader.With(err.Error())
	}
	return auth, nil
}

// authorizationFields is what an Authorization header consists of.
type authorizationFields struct{ credential, signedHeaders, signature string }

// set refuses fields that are unknown or given twice.
func (f *authorizationFields) set(name, value string) bool {
	var field *string
	switch name {
	case "Credential":
		field = &f.credential
	case "SignedHeaders":
		field = &f.signedHeaders
	case "Signature":
		field = &f.signature
	default:
		return false
	}
	if *field != "" {
		return false
	}
	*field = value
	return true
}

// malformed says what is wrong with a signature's parameters; the form decides which code that is.
type malformed string

func (m malformed) Error() string { return string(m) }

// newAuthorization reads what all forms have in common; a POST policy has no signed headers.
func newAuthorization(credential, signedHeaders, signature string) (authorization, error) {
	parts := strings.Split(credential, "/")
	if len(parts) != 5 || parts[0] == "" || parts[4] != terminator {
		return authorization{}, malformed(`The credential must be "<key-id>/YYYYMMDD/REGION/SERVICE/aws4_request".`)
	}
	if len(parts[1]) != dateLength {
		return authorization{}, malformed("The date of the credential must be YYYYMMDD.")
	}
	if len(signature) != signatureLength || !isHex(signature) {
		return authorization{}, malformed("The signature must be 64 hexadecimal digits.")
	}
	auth := authorization{
		keyID:     parts[0],
		scope:     scope{date: parts[1], region: parts[2], service: parts[3]},
		signature: []byte(strings.ToLower(signature)),
	}
	if signedHeaders == "" {
		return auth, nil
	}
	auth.signed = strings.Split(signedHeaders, ";")
	if !areSigned(auth.signed) {
		return authorization{}, malformed("SignedHeaders must be at most 256 lower-case names, each once.")
	}
	return auth, nil
}

func areSigned(names []string) bool {
	if len(names) > maxSigned {
		return false
	}
	for i, name := range names {
		if name == "" || name != strings.ToLower(name) || slices.Contains(names[:i], name) {
			return false
		}
	}
	return true
}

// checkScope refuses a scope that is not of this service and this day. The region may be any: there is but one store,
// and clients that have a region of their own built in work as they are.
func (a authorization) checkScope(catalogue access.Error) error {
	switch {
	case a.scope.region == "":
		return catalogue.With("The credential must name a region.")
	case a.scope.service != service:
		return catalogue.With("The service of the credential must be s3.")
	case a.scope.date != a.time.Format(dateFormat):
		return catalogue.With("The date of the credential does not match the date of the request.")
	}
	return nil
}

// checkSigned refuses headers that could change the request without being covered.
func (a authorization) checkSigned(header http.Header, catalogue access.Error) error {
	if !slices.Contains(a.signed, "host") {
		return catalogue.With("The header host must be signed.")
	}
	for name := range header {
		// The payload's hash is a line of its own in what is signed.
		if isAmz(name) && name != headerSHA256 && !slices.Contains(a.signed, lowerName(name)) {
			return access.ErrDenied.With("There were headers present in the request which were not signed: " + printable(strings.ToLower(name)))
		}
	}
	return nil
}

// matches compares in constant time.
func (a authorization) matches(key, toSign []byte) bool {
	var digits [signatureLength]byte
	hex.Encode(digits[:], mac(key, toSign))
	return hmac.Equal(digits[:], a.signature)
}

// proof is what a verified head leaves for the chunks of its body.
type proof struct {
	key  []byte
	auth authorization
}

// prove looks up the key and compares signatures.
func (v *Verifier) prove(in *incoming, auth authorization, payloadHash string) (proof, error) {
	secret, err := v.Lookup(auth.keyID)
	if err != nil {
		return proof{}, err
	}
	key := v.keys.derive(auth.scope, secret)
	covered := canonical{
		method:        in.Method,
		query:         canonicalQuery(in.query),
		headers:       canonicalHeaders(in.Request, auth.signed),
		signedHeaders: strings.Join(auth.signed, ";"),
		payloadHash:   payloadHash,
	}
	for _, covered.path = range in.path.canonicalPaths() {
		if auth.matches(key, stringToSign(auth.time.Format(timeFormat), auth.scope, covered)) {
			v.keys.remember(auth.scope, secret, key)
			return proof{key: key, auth: auth}, nil
		}
	}
	return proof{}, access.ErrSignature
}

// verifyHeader checks a request with an Authorization header.
func (v *Verifier) verifyHeader(in *incoming) (*Verified, error) {
	values := in.Header.Values(headerAuthorization)
	if len(values) != 1 {
		return nil, access.ErrAuthHeader
	}
	auth, err := parseAuthorization(values[0])
	if err != nil {
		return nil, err
	}
	auth.time, err = headerTime(in.Header)
	if err != nil {
		return nil, err
	}
	if err := auth.checkScope(access.ErrAuthHeader); err != nil {
		return nil, err
	}
	if err := auth.checkSigned(in.Header, access.ErrAuthHeader); err != nil {
		return nil, err
	}
	if late := in.now.Sub(auth.time); late > skew || late < -skew {
		return nil, access.ErrTimeSkewed
	}
	hash, err := headerHash(in.Header)
	if err != nil {
		return nil, err
	}
	proof, err := v.prove(in, auth, hash)
	if err != nil {
		return nil, err
	}
	return in.verified(FormHeader, proof, hash)
}

func headerHash(header http.Header) (string, error) {
	hash, err := single(header, headerSHA256)
	if err == nil && hash == "" {
		err = access.ErrInvalidRequest.With("Missing required header for this request: x-amz-content-sha256")
	}
	return hash, err
}

// headerTime is the time of a request signed by header; Date stands in for an absent x-amz-date.
func headerTime(header http.Header) (time.Time, error) {
	value, err := single(header, headerDate)
	if err != nil {
		return time.Time{}, err
	}
	if value != "" {
		if t, err := time.Parse(timeFormat, value); err == nil {
			return t, nil
		}
	} else if t, err := http.ParseTime(header.Get("Date")); err == nil {
		return t.UTC(), nil
	}
	return time.Time{}, access.ErrDenied.With("AWS authentication requires a valid Date or x-amz-date header")
}

// single is the value of a header that must not be given twice, "" when it is absent.
func single(header http.Header, name string) (string, error) {
	values := header.Values(name)
	if len(values) > 1 {
		return "", access.ErrInvalidArgument.With("A header must be given once: " + name)
	}
	return header.Get(name), nil
}

// printable is a piece of the request, fit for a message.
func printable(s string) string {
	const limit = 64
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, s)
	return s[:min(len(s), limit)]
}

func isHex(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil
}
