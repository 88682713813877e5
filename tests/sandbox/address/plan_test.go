package address_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
)

func TestNewNode(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		number int
		ok     bool
	}{
		"zero":     {reason: "numbers start at 1", number: 0},
		"negative": {reason: "numbers start at 1", number: -1},
		"first":    {reason: "the first node", number: 1, ok: true},
		"last":     {reason: "the last node that fits", number: address.MaxNode, ok: true},
		"too many": {reason: "the network of the nodes is a /24", number: address.MaxNode + 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := address.NewNode(c.number)
			assert.Equal(t, c.ok, err == nil, c.reason)
		})
	}
}

func TestNoTwoNodesShareAnything(t *testing.T) {
	t.Parallel()

	seen := map[string]int{address.Host: 0}
	claim := func(t *testing.T, what string, number int) {
		t.Helper()

		other, taken := seen[what]
		require.Falsef(t, taken, "%s belongs to nodes %d and %d", what, other, number)

		seen[what] = number
	}

	for number := 1; number <= address.MaxNode; number++ {
		n, err := address.NewNode(number)
		require.NoError(t, err)

		claim(t, n.IP(), number)
		claim(t, n.Pods(), number)
		claim(t, n.Namespace(), number)
		claim(t, n.Link(), number)
		claim(t, n.PeerLink(), number)
		assert.LessOrEqual(t, len(n.PeerLink()), 15, "the kernel's limit for a name of a link")
	}
}

func TestNetworksNest(t *testing.T) {
	t.Parallel()

	n, err := address.NewNode(address.MaxNode)
	require.NoError(t, err)

	assert.True(t, netip.MustParsePrefix(address.HostPrefix).Contains(netip.MustParseAddr(n.IP())))
	assert.True(t, netip.MustParsePrefix(address.Pods).Contains(netip.MustParsePrefix(n.Pods()).Addr()))
	assert.True(t, netip.MustParsePrefix(address.Services).Contains(netip.MustParseAddr(address.DNSService)))
	assert.False(t, netip.MustParsePrefix(address.Pods).Overlaps(netip.MustParsePrefix(address.Services)))
	assert.False(t, netip.MustParsePrefix(address.Pods).Overlaps(netip.MustParsePrefix(address.HostPrefix)))
}
