package sigv4

import (
	"net/http"
	"strings"
)

// spellings are the usual headers in their two spellings: looking them up is several times cheaper than making them.
var lowerNames, canonicalNames = spellings(
	"Accept", "Accept-Encoding", "Amz-Sdk-Invocation-Id", "Amz-Sdk-Request", "Cache-Control", "Connection", "Content-Disposition",
	"Content-Encoding", "Content-Language", "Content-Length", "Content-Md5", "Content-Type", "Date", "Expect", "Expires",
	"If-Match", "If-Modified-Since", "If-None-Match", "If-Unmodified-Since", "Range", "User-Agent", "X-Amz-Acl",
	"X-Amz-Checksum-Algorithm", "X-Amz-Checksum-Crc32", "X-Amz-Checksum-Crc32c", "X-Amz-Checksum-Crc64nvme", "X-Amz-Checksum-Mode",
	"X-Amz-Content-Sha256", "X-Amz-Copy-Source", "X-Amz-Copy-Source-Range", "X-Amz-Date", "X-Amz-Decoded-Content-Length",
	"X-Amz-Metadata-Directive", "X-Amz-Sdk-Checksum-Algorithm", "X-Amz-Security-Token", "X-Amz-Storage-Class", "X-Amz-Trailer",
	"X-Amz-User-Agent", "Authorization", "Host", "Transfer-Encoding",
)

func spellings(names ...string) (lower, canonical map[string]string) {
	lower, canonical = make(map[string]string, len(names)), make(map[string]string, len(names))
	for _, name := range names {
		lower[name], canonical[strings.ToLower(name)] = strings.ToLower(name), name
	}
	return lower, canonical
}

// lowerName is a header's name in lower case.
func lowerName(name string) string {
	if lower, ok := lowerNames[name]; ok {
		return lower
	}
	return strings.ToLower(name)
}

// canonicalName is a header's name as http.Header keeps it.
func canonicalName(lower string) string {
	if name, ok := canonicalNames[lower]; ok {
		return name
	}
	return http.CanonicalHeaderKey(lower)
}

// isAmz tells S3's own headers, in any spelling.
func isAmz(name string) bool {
	const prefix = "X-Amz-"
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}
