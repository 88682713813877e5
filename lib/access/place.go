package access

import (
	"strings"
	"unicode/utf8"
)

// MaxKey is the longest key of an object, in bytes. S3 has 1024; Garage 2.5.0 keeps keys in LMDB, whose own keys end at
// 511 bytes: 480 bytes and more it cannot write, 472 and more it writes but cannot delete without an error (32 bytes go
// to the bucket, 8 to the time in the list of what to collect), and calls both a lack of quorum, which clients retry.
const MaxKey = 471

const minBucket = 3

// Locate finds bucket and key of a request. Host is the Host header, with or without a port; path is the decoded path;
// domains are the hosts, in lower case, whose subdomains are buckets (virtual-host style). Any other host means
// path-style. Both are empty for a request to the service itself. The error is ErrInvalidURI, ErrInvalidBucket or
// ErrKeyTooLong.
func Locate(host, path string, domains []string) (bucket, key string, err error) {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok || !utf8.ValidString(path) {
		return "", "", ErrInvalidURI
	}
	bucket, key = hostBucket(host, domains), rest
	if bucket == "" {
		bucket, key, _ = strings.Cut(rest, "/")
	}
	switch {
	case bucket == "" && rest == "":
		return "", "", nil
	case !isBucket(bucket):
		return "", "", ErrInvalidBucket
	case len(key) > MaxKey:
		return "", "", ErrKeyTooLong
	}
	return bucket, key, nil
}

// hostBucket is what stands before one of the domains; the longest domain wins.
func hostBucket(host string, domains []string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	longest, bucket := 0, ""
	for _, domain := range domains {
		// The domain itself may be a subdomain of another one; then it is no bucket there.
		if host == domain {
			return ""
		}
		if prefix, ok := strings.CutSuffix(host, "."+domain); ok && len(domain) > longest {
			longest, bucket = len(domain), prefix
		}
	}
	return bucket
}

// isBucket is the form of every bucket this module makes: a DNS label.
func isBucket(name string) bool { return len(name) >= minBucket && isLabel(name) }
