package access

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLocate(t *testing.T) {
	domains := []string{"s3.d8-system-s3.svc", "s3.d8-system-s3.svc.cluster.local"}
	cases := map[string]struct {
		host, path  string
		bucket, key string
		want        error
		reason      string
	}{
		"service":                   {"s3.d8-system-s3.svc", "/", "", "", nil, "ListBuckets"},
		"bucket":                    {"s3.d8-system-s3.svc", "/logs", "logs", "", nil, "path-style"},
		"bucket with slash":         {"s3.d8-system-s3.svc", "/logs/", "logs", "", nil, "path-style"},
		"object":                    {"s3.d8-system-s3.svc:443", "/logs/a/b", "logs", "a/b", nil, "path-style"},
		"key with slashes":          {"s3.d8-system-s3.svc", "/logs//a//b/", "logs", "/a//b/", nil, "nothing is normalised"},
		"key of dots":               {"s3.d8-system-s3.svc", "/logs/../other/a", "logs", "../other/a", nil, "nothing is normalised"},
		"virtual host":              {"logs.s3.d8-system-s3.svc", "/a/b", "logs", "a/b", nil, "virtual-host style"},
		"virtual host, long domain": {"logs.s3.d8-system-s3.svc.cluster.local:8443", "/a", "logs", "a", nil, "virtual-host style"},
		"virtual host, upper":       {"LOGS.S3.d8-system-s3.svc", "/a", "logs", "a", nil, "hosts have no case"},
		"virtual host, root dot":    {"logs.s3.d8-system-s3.svc.", "/a", "logs", "a", nil, "the same host"},
		"virtual host, bucket":      {"logs.s3.d8-system-s3.svc", "/", "logs", "", nil, "the bucket itself"},
		"virtual host, slashes":     {"logs.s3.d8-system-s3.svc", "//a", "logs", "/a", nil, "nothing is normalised"},
		"address":                   {"10.0.0.1:8443", "/logs/a", "logs", "a", nil, "any other host is path-style"},
		"IPv6 address":              {"[::1]", "/logs/a", "logs", "a", nil, "any other host is path-style"},
		"IPv6 address and port":     {"[::1]:8443", "/logs/a", "logs", "a", nil, "any other host is path-style"},
		"another domain":            {"logs.example.com", "/other/a", "other", "a", nil, "any other host is path-style"},
		"suffix without a dot":      {"evils3.d8-system-s3.svc", "/logs/a", "logs", "a", nil, "not a subdomain"},
		"no host":                   {"", "/logs/a", "logs", "a", nil, "any other host is path-style"},

		"two labels":       {"a.b.s3.d8-system-s3.svc", "/x", "", "", ErrInvalidBucket, "buckets are labels"},
		"empty bucket":     {"s3.d8-system-s3.svc", "//logs/a", "", "", ErrInvalidBucket, "Garage would drop the slash"},
		"upper bucket":     {"s3.d8-system-s3.svc", "/Logs/a", "", "", ErrInvalidBucket, "buckets are labels"},
		"dots":             {"s3.d8-system-s3.svc", "/../a", "", "", ErrInvalidBucket, "buckets are labels"},
		"short bucket":     {"s3.d8-system-s3.svc", "/ab/a", "", "", ErrInvalidBucket, "three at least"},
		"long bucket":      {"s3.d8-system-s3.svc", "/" + strings.Repeat("a", 64), "", "", ErrInvalidBucket, "63 at most"},
		"zero byte":        {"s3.d8-system-s3.svc", "/logs\x00/a", "", "", ErrInvalidBucket, "buckets are labels"},
		"long key":         {"s3.d8-system-s3.svc", "/logs/" + strings.Repeat("a", 472), "", "", ErrKeyTooLong, "Garage could not delete it"},
		"longest key":      {"s3.d8-system-s3.svc", "/logs/" + strings.Repeat("a", 471), "logs", strings.Repeat("a", 471), nil, "471"},
		"not UTF-8":        {"s3.d8-system-s3.svc", "/logs/\xff", "", "", ErrInvalidURI, "keys are text"},
		"star of OPTIONS":  {"s3.d8-system-s3.svc", "*", "", "", ErrInvalidURI, "no path"},
		"empty path":       {"s3.d8-system-s3.svc", "", "", "", ErrInvalidURI, "no path"},
		"slash and spaces": {"s3.d8-system-s3.svc", "/ ", "", "", ErrInvalidBucket, "buckets are labels"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bucket, key, err := Locate(c.host, c.path, domains)
			if c.want != nil {
				require.ErrorIs(t, err, c.want, c.reason)
				assert.Empty(t, bucket+key)
				return
			}
			require.NoError(t, err, c.reason)
			assert.Equal(t, c.bucket, bucket, c.reason)
			assert.Equal(t, c.key, key, c.reason)
		})
	}
}
