package names_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/names"
)

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func TestBucketIsADNSLabelWhateverTheNames(t *testing.T) {
	cases := map[string]struct{ namespace, name, reason string }{
		"short":         {"d8-monitoring", "loki", "the readable part is kept"},
		"longest":       {strings.Repeat("n", 63), strings.Repeat("b", 63), "an overlong readable part is cut"},
		"cut at a dash": {"d8-" + strings.Repeat("a", 46), "-b", "no dash may stand before another"},
		"dots":          {"kube-system", "a.b.c", "a dot would be a second label"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := names.Bucket(c.namespace, c.name, "1b4e28ba-2fa1-11d2-883f-0016d3cca427")
			require.Regexp(t, dnsLabel, got, c.reason)
			require.NotContains(t, got, "--", c.reason)
		})
	}
}

func TestBucketMadeAgainIsAnotherBucket(t *testing.T) {
	first := names.Bucket("d8-x", "logs", "uid-1")
	require.Equal(t, first, names.Bucket("d8-x", "logs", "uid-1"))
	require.NotEqual(t, first, names.Bucket("d8-x", "logs", "uid-2"))
	require.NotEqual(t, names.Bucket("d8-a", "b-c", "uid-1"), names.Bucket("d8-a-b", "c", "uid-2"), "readable parts that join alike stay apart by the UID")
}

// FuzzBucket: whatever valid names and UIDs come, the bucket is a DNS label and ends with the hash of the UID.
func FuzzBucket(f *testing.F) {
	f.Add("d8-monitoring", "loki", "uid")
	f.Fuzz(func(t *testing.T, namespace, name, uid string) {
		if !dnsLabel.MatchString(namespace) || !dnsLabel.MatchString(name) {
			return
		}
		got := names.Bucket(namespace, name, uid)
		require.Regexp(t, dnsLabel, got)
		require.NotEqual(t, got, names.Bucket(namespace, name, uid+"x"))
	})
}

func TestNamesOfAPlane(t *testing.T) {
	require.Equal(t, "garage-a", names.GarageObject("a"))
	require.Equal(t, "garage-a-2", names.GaragePod("a", 2))
	require.Equal(t, "data-garage-a-2", names.GarageClaim("a", 2))
	require.Equal(t, "node-key-1", names.NodeKeyKey(1))
	require.Equal(t, "arn:aws:iam::000000000000:role/d8-x/logs", names.RoleARN("d8-x", "logs"))
	require.Equal(t, "logs-s3", names.ConnectionConfigMap("logs"))
}
