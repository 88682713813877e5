package access

import (
	"strings"
	"unicode/utf8"
)

// CopySource is the object an x-amz-copy-source header names.
type CopySource struct {
	Bucket string
	Key    string
}

// parseCopySource reads `[/]<bucket>/<key>`, percent-encoded, and nothing else. A plus sign is a plus sign.
func parseCopySource(value string) (CopySource, error) {
	invalid := ErrInvalidArgument.With("Copy Source must mention the source bucket and key: sourcebucket/sourcekey")
	path, query, versioned := strings.Cut(value, "?")
	if versioned && query != "versionId=null" {
		return CopySource{}, ErrNotImplemented.With("A copy source with a version is not implemented.")
	}
	decoded, ok := unescape(strings.TrimPrefix(path, "/"))
	if !ok || !utf8.ValidString(decoded) {
		return CopySource{}, invalid
	}
	bucket, key, found := strings.Cut(decoded, "/")
	if !found || !isBucket(bucket) || key == "" || len(key) > MaxKey {
		return CopySource{}, invalid
	}
	return CopySource{Bucket: bucket, Key: key}, nil
}

// unescape undoes percent-encoding; net/url is out of reach of a pure package.
func unescape(s string) (string, bool) {
	if !strings.Contains(s, "%") {
		return s, true
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			out.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		high, okHigh := unhex(s[i+1])
		low, okLow := unhex(s[i+2])
		if !okHigh || !okLow {
			return "", false
		}
		out.WriteByte(high<<4 | low)
		i += 2
	}
	return out.String(), true
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
