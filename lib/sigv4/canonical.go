package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/deckhouse/system-s3/lib/access"
)

const (
	algorithm  = "AWS4-HMAC-SHA256"
	service    = "s3"
	terminator = "aws4_request"

	timeFormat = "20060102T150405Z"
	dateFormat = "20060102"
	dateLength = len(dateFormat)
)

// uriPath is a request's path as it was sent and as it is meant.
type uriPath struct{ raw, decoded string }

// pair is a query parameter, decoded.
type pair struct{ name, value string }

type pairs []pair

func (p pairs) hasAny(names ...string) bool {
	return slices.ContainsFunc(p, func(q pair) bool { return slices.Contains(names, q.name) })
}

// one is the value of a parameter that is given exactly once.
func (p pairs) one(name string) (string, bool) {
	value, count := "", 0
	for _, q := range p {
		if q.name == name {
			value = q.value
			count++
		}
	}
	return value, count == 1
}

// target reads path and query of a request from the request line: net/url would already have changed them.
func target(r *http.Request) (uriPath, pairs, error) {
	uri := r.RequestURI
	if uri == "" { // a request that no server received
		uri = r.URL.RequestURI()
	}
	if _, rest, absolute := strings.Cut(uri, "://"); absolute && uri[0] != '/' {
		uri = rest[min(len(rest), max(0, strings.IndexAny(rest+"/", "/?"))):]
	}
	rawPath, rawQuery, _ := strings.Cut(uri, "?")
	if rawPath == "" {
		rawPath = "/"
	}
	decoded, err := url.PathUnescape(rawPath)
	if err != nil {
		return uriPath{}, nil, access.ErrInvalidURI
	}
	query, err := parseQuery(rawQuery)
	if err != nil {
		return uriPath{}, nil, err
	}
	return uriPath{raw: rawPath, decoded: decoded}, query, nil
}

// parseQuery splits a query at ampersands only; a plus sign is a space, as S3 takes it.
func parseQuery(raw string) (pairs, error) {
	var query pairs
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(part, "=")
		name, errName := url.QueryUnescape(rawName)
		value, errValue := url.QueryUnescape(rawValue)
		if errName != nil || errValue != nil {
			return nil, access.ErrInvalidURI
		}
		query = append(query, pair{name, value})
	}
	return query, nil
}

// escape percent-encodes everything but the unreserved characters and, if told so, the slash.
func escape(s string, keepSlash bool) string {
	if plain(s, keepSlash) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	for _, c := range []byte(s) {
		if unreserved(c) || c == '/' && keepSlash {
			out.WriteByte(c)
			continue
		}
		const digits = "0123456789ABCDEF"
		out.Write([]byte{'%', digits[c>>4], digits[c&0xf]})
	}
	return out.String()
}

func plain(s string, keepSlash bool) bool {
	for i := range len(s) {
		if c := s[i]; !unreserved(c) && (c != '/' || !keepSlash) {
			return false
		}
	}
	return true
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// canonicalPaths is what a client may have signed as its path: what S3 computes from any spelling, and, for clients
// that sign what they send, that.
func (p uriPath) canonicalPaths() []string {
	encoded := escape(p.decoded, true)
	if encoded == p.raw {
		return []string{encoded}
	}
	return []string{encoded, p.raw}
}

// canonicalQuery is the sorted query without the signature itself.
func canonicalQuery(query pairs) string {
	if len(query) == 0 {
		return ""
	}
	parts := make([]pair, 0, len(query))
	for _, q := range query {
		if q.name != paramSignature {
			parts = append(parts, pair{escape(q.name, false), escape(q.value, false)})
		}
	}
	slices.SortFunc(parts, func(a, b pair) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.value, b.value)
	})
	var out strings.Builder
	for i, part := range parts {
		if i > 0 {
			out.WriteByte('&')
		}
		out.WriteString(part.name + "=" + part.value)
	}
	return out.String()
}

// canonicalHeaders is the signed headers of a request, one a line.
func canonicalHeaders(r *http.Request, signed []string) string {
	const usual = 1 << 10 // bytes
	var out strings.Builder
	out.Grow(usual)
	for _, name := range signed {
		out.WriteString(name)
		out.WriteByte(':')
		for i, value := range signedValues(r, name) {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(squeeze(value))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// signedValues is the values of a header, also of those that net/http keeps apart from the others.
func signedValues(r *http.Request, name string) []string {
	if name == "host" {
		return []string{r.Host}
	}
	values := r.Header[canonicalName(name)]
	if len(values) > 0 {
		return values
	}
	switch {
	case name == "content-length" && r.ContentLength >= 0:
		return []string{strconv.FormatInt(r.ContentLength, 10)}
	case name == "transfer-encoding":
		return r.TransferEncoding
	}
	return nil
}

// squeeze trims a value and makes one space of many.
func squeeze(value string) string {
	value = strings.Trim(value, " \t")
	if !strings.Contains(value, "  ") {
		return value
	}
	var out strings.Builder
	for i := range len(value) {
		if value[i] != ' ' || value[i-1] != ' ' {
			out.WriteByte(value[i])
		}
	}
	return out.String()
}

// canonical is everything a signature covers.
type canonical struct {
	method, path, query, headers, signedHeaders, payloadHash string
}

// sum is the digest of what is covered, one part a line.
func (c canonical) sum() [sha256.Size]byte {
	const usual = 2 << 10 // bytes, which fit on the stack
	out := make([]byte, 0, usual)
	for _, part := range []string{c.method, "\n", c.path, "\n", c.query, "\n", c.headers, "\n", c.signedHeaders, "\n", c.payloadHash} {
		out = append(out, part...)
	}
	return sha256.Sum256(out)
}

// scope is where a derived key is valid.
type scope struct{ date, region, service string }

func (s scope) String() string {
	return s.date + "/" + s.region + "/" + s.service + "/" + terminator
}

// key derives the signing key of the scope.
func (s scope) key(secret string) []byte {
	key := mac([]byte("AWS4"+secret), []byte(s.date))
	key = mac(key, []byte(s.region))
	key = mac(key, []byte(s.service))
	return mac(key, []byte(terminator))
}

// stringToSign is what the signing key is applied to; the stamp is in timeFormat.
func stringToSign(stamp string, s scope, c canonical) []byte {
	out := make([]byte, 0, toSignSize)
	for _, part := range []string{algorithm, "\n", stamp, "\n", s.date, "/", s.region, "/", s.service, "/", terminator, "\n"} {
		out = append(out, part...)
	}
	sum := c.sum()
	return hex.AppendEncode(out, sum[:])
}

// toSignSize is room for a usual string to sign.
const toSignSize = 192

func mac(key, data []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(data) // a hash never fails to write
	return h.Sum(nil)
}

func hexSum(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}
