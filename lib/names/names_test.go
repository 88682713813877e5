package names_test

import (
	"fmt"
	"math/rand/v2"
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

// TestBucketsNeverMeet: whatever namespaces and names SystemBuckets have, and however alike they are, each bucket is a DNS
// label of its own, and neither is ever the name of one that is being deleted.
func TestBucketsNeverMeet(t *testing.T) {
	seed := uint64(20260101)
	dice := rand.New(rand.NewPCG(seed, 0))
	label := func(longest int) string {
		const first, later = "abz09", "ab-z0-9" // few characters: names that differ little
		name := []byte{first[dice.IntN(len(first))]}
		for length := dice.IntN(longest); len(name) < length; {
			name = append(name, later[dice.IntN(len(later))])
		}
		return strings.TrimRight(string(name), "-")
	}
	owner := map[string]string{}
	for n := range 20_000 {
		namespace := []string{"d8-", "kube-"}[dice.IntN(2)] + label(58)
		if dice.IntN(10) == 0 {
			namespace = "d8-" + strings.Repeat("a", 40) // and names that are cut alike
		}
		name, uid := label(63), fmt.Sprintf("uid-%d", n)
		got := names.Bucket(namespace, name, uid)
		require.Regexp(t, dnsLabel, got, "%s/%s", namespace, name)
		require.Empty(t, owner[got], "%s/%s and %s", namespace, name, owner[got])
		owner[got] = namespace + "/" + name
		id := fmt.Sprintf("%064x", n)
		removed := names.RemovedBucket(id)
		require.Regexp(t, dnsLabel, removed)
		require.Greater(t, len(removed[strings.LastIndex(removed, "-")+1:]), len(got[strings.LastIndex(got, "-")+1:]),
			"what follows the last dash is longer than the hash of a UID")
	}
}

func TestNamesOfAPlane(t *testing.T) {
	require.Equal(t, "garage-a", names.GarageObject("a"))
	require.Equal(t, "garage-a-2", names.GaragePod("a", 2))
	require.Equal(t, "s3-gateway-a", names.PlaneGatewayService("a"))
	require.Equal(t, "data-garage-a-2", names.GarageClaim("a", 2))
	require.Equal(t, "node-key-1", names.NodeKeyKey(1))
	require.Equal(t, "arn:aws:iam::000000000000:role/d8-x/logs", names.RoleARN("d8-x", "logs"))
	require.Equal(t, "logs-s3", names.ConnectionConfigMap("logs"))
}
