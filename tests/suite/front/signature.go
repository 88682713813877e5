package front

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	algorithm    = "AWS4-HMAC-SHA256"
	signedChunks = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	unsigned     = "UNSIGNED-PAYLOAD"
)

// signature is a signature with all that it depends on but the message itself. The SDK's signer cannot stand in for it:
// it chooses itself what is signed, and many of the suite's requests are wrong in just that.
type signature struct {
	scope   string // <day>/<region>/<service>/aws4_request
	date    string
	signed  []string // names of headers, as they were listed
	payload string   // hash of the payload, or the word for its kind
	value   string
}

// parseAuthorization takes what it finds; what is missing makes a signature that fits nothing.
func parseAuthorization(value string, header http.Header) signature {
	s := signature{date: header.Get("X-Amz-Date"), payload: header.Get("X-Amz-Content-Sha256")}
	if s.date == "" {
		s.date = header.Get("Date")
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(value, algorithm), ",") {
		name, field, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			_, s.scope, _ = strings.Cut(field, "/")
		case "SignedHeaders":
			s.signed = strings.Split(field, ";")
		case "Signature":
			s.value = field
		}
	}
	return s
}

func parsePresigned(query string, header http.Header) signature {
	s := signature{payload: header.Get("X-Amz-Content-Sha256")}
	for _, p := range splitQuery(query) {
		switch p.name {
		case "X-Amz-Credential":
			_, s.scope, _ = strings.Cut(p.value, "/")
		case "X-Amz-SignedHeaders":
			s.signed = strings.Split(p.value, ";")
		case "X-Amz-Date":
			s.date = p.value
		case "X-Amz-Signature":
			s.value = p.value
		case "X-Amz-Content-Sha256":
			s.payload = p.value
		}
	}
	if s.payload == "" {
		s.payload = unsigned
	}
	return s
}

type parameter struct{ name, value string }

func splitQuery(query string) []parameter {
	var parameters []parameter
	for part := range strings.SplitSeq(query, "&") {
		rawName, rawValue, _ := strings.Cut(part, "=")
		name, errName := url.QueryUnescape(rawName)
		value, errValue := url.QueryUnescape(rawValue)
		if part != "" && errName == nil && errValue == nil {
			parameters = append(parameters, parameter{name, value})
		}
	}
	return parameters
}

// signature of the message under the key of a scope.
func (m message) signature(s signature, key []byte) string {
	canonical := strings.Join([]string{
		m.method, m.path, canonicalQuery(m.query), m.headers(s.signed), strings.Join(s.signed, ";"), s.payload,
	}, "\n")
	return hexMAC(key, strings.Join([]string{algorithm, s.date, s.scope, hexSum(canonical)}, "\n"))
}

func (m message) headers(signed []string) string {
	var out strings.Builder
	for _, name := range signed {
		value := strings.Join(m.header.Values(name), ",")
		switch name {
		case "host":
			value = m.host
		case "content-length":
			value = strconv.FormatInt(m.length, 10)
		}
		out.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	return out.String()
}

func canonicalQuery(query string) string {
	parameters := splitQuery(query)
	slices.SortFunc(parameters, func(a, b parameter) int {
		return cmp.Or(strings.Compare(escape(a.name), escape(b.name)), strings.Compare(escape(a.value), escape(b.value)))
	})
	var parts []string
	for _, p := range parameters {
		if p.name != "X-Amz-Signature" {
			parts = append(parts, escape(p.name)+"="+escape(p.value))
		}
	}
	return strings.Join(parts, "&")
}

// escape is the percent-encoding of Signature V4.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// scopeKey derives the key of a scope, whatever the scope looks like.
func scopeKey(secret, scope string) []byte {
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	return key
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexMAC(key []byte, text string) string { return hex.EncodeToString(mac(key, text)) }

func hexSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
