package sigv4

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/deckhouse/system-s3/lib/access"
)

// Signer signs requests to Garage with the plane's internal key. It is safe for concurrent use.
//
// It shares its canonical forms with Verifier and does not use the SDK's signer for two reasons: only what Garage wants
// signed is signed, so that a header which Garage reads differently (white space, bytes that are no UTF-8) cannot break
// a signature; and the path that is signed differs from the path that is sent (see Forward).
type Signer struct {
	Endpoint    *url.URL // scheme and host of Garage's S3 port
	Region      string
	AccessKeyID string
	Secret      string

	keys scopeKeys
}

// Forward makes the request to Garage: path-style, with the operation's query parameters and the headers that Garage
// has a use for and no others, with the body framed as Garage takes it, signed at the moment now. An empty chunked body
// is read and verified here, as the transport would not read it. The transport must not compress (DisableCompression).
//
// Garage drops slashes at the beginning of a key, but only as long as they are not encoded; so they are, and what is
// signed is the decoded path as ever.
func (s *Signer) Forward(ctx context.Context, v *Verified, op access.Operation, now time.Time) (*http.Request, error) {
	wire, decoded := "/"+v.Bucket, "/"+v.Bucket
	if v.Key != "" {
		trimmed := strings.TrimLeft(v.Key, "/")
		wire += "/" + strings.Repeat("%2F", len(v.Key)-len(trimmed)) + escape(trimmed, true)
		decoded += "/" + v.Key
	}
	query := make(pairs, 0, len(op.Query))
	for name, value := range op.Query {
		query = append(query, pair{name, value})
	}
	r := (&http.Request{
		Method:     v.Method,
		URL:        &url.URL{Scheme: s.Endpoint.Scheme, Host: s.Endpoint.Host, Path: decoded, RawPath: wire, RawQuery: canonicalQuery(query)},
		Host:       s.Endpoint.Host,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     outbound(v.Header, op.CopySource),
	}).WithContext(ctx)
	hash, err := s.frame(r, v)
	if err != nil {
		return nil, err
	}
	s.sign(r, query, hash, now)
	return r, nil
}

// Sign signs a request of the gateway's own, such as its readiness question; its body, if any, is not covered.
func (s *Signer) Sign(r *http.Request, now time.Time) error {
	query, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	if r.Host == "" {
		r.Host = r.URL.Host
	}
	s.sign(r, query, unsignedPayload, now)
	return nil
}

// sign covers the host and every x-amz-* header, which is what Garage insists on.
func (s *Signer) sign(r *http.Request, query pairs, hash string, now time.Time) {
	stamp := now.UTC().Format(timeFormat)
	r.Header.Set(headerDate, stamp)
	r.Header.Set(headerSHA256, hash)
	signed := []string{"host"}
	for name := range r.Header {
		if isAmz(name) {
			signed = append(signed, lowerName(name))
		}
	}
	slices.Sort(signed)
	covered := canonical{
		method: r.Method, path: escape(r.URL.Path, true), query: canonicalQuery(query),
		headers: garageHeaders(r, signed), signedHeaders: strings.Join(signed, ";"), payloadHash: hash,
	}
	sc := scope{date: stamp[:dateLength], region: s.Region, service: service}
	key := s.keys.derive(sc, s.Secret)
	s.keys.remember(sc, s.Secret, key)
	signature := hex.EncodeToString(mac(key, stringToSign(stamp, sc, covered)))
	r.Header.Set(headerAuthorization, algorithm+" Credential="+s.AccessKeyID+"/"+sc.String()+
		", SignedHeaders="+covered.signedHeaders+", Signature="+signature)
}

// garageHeaders is canonicalHeaders with Garage's idea of white space, which is Unicode's.
func garageHeaders(r *http.Request, signed []string) string {
	var out strings.Builder
	for _, name := range signed {
		value := strings.Join(signedValues(r, name), ",")
		out.WriteString(name)
		out.WriteByte(':')
		out.WriteString(strings.Join(strings.Fields(value), " "))
		out.WriteByte('\n')
	}
	return out.String()
}

// outbound is the headers that Garage has a use for.
func outbound(header http.Header, source *access.CopySource) http.Header {
	out := http.Header{}
	for name, values := range header {
		if isAmz(name) || hasUse(lowerName(name)) {
			out[name] = slices.Clone(values)
		}
	}
	if source != nil {
		out.Set("X-Amz-Copy-Source", "/"+source.Bucket+"/"+escape(source.Key, true))
	}
	return out
}

func hasUse(name string) bool {
	switch name {
	case "range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "user-agent":
		return true
	}
	return isObjectHeader(name)
}

// frame gives the request its body and returns what its x-amz-content-sha256 says. Chunks that were verified here go on
// as one plain body; only a trailing checksum, which Garage is to check, needs chunks again.
func (s *Signer) frame(r *http.Request, v *Verified) (hash string, err error) {
	r.Body, r.ContentLength = v.Body, v.Body.length
	chunked := v.Payload.chunked()
	if v.Body.length == 0 {
		if err := drain(v.Body, chunked); err != nil {
			return "", err
		}
		r.Body = http.NoBody
	}
	switch {
	case v.Payload == PayloadHashed:
		return v.payloadHash, nil
	case !chunked || v.Body.trailer == "":
		return unsignedPayload, nil
	}
	framed := newFramer(v.Body)
	r.Body, r.ContentLength = framed, framed.total()
	r.Header.Set(headerTrailer, v.Body.trailer)
	r.Header.Set(headerDecodedLength, fmt.Sprint(v.Body.length))
	encodings := append([]string{chunkedEncoding}, r.Header.Values(headerEncoding)...)
	r.Header.Set(headerEncoding, strings.Join(encodings, ","))
	return unsignedChunksTrailer, nil
}

// drain reads an empty chunked body, whose signatures would otherwise go unread.
func drain(body *Body, chunked bool) error {
	if !chunked {
		return nil
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return fmt.Errorf("read empty body: %w", err)
	}
	return nil
}
