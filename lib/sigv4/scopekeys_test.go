package sigv4

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDerivedKeysAreRememberedWithinBounds(t *testing.T) {
	var keys scopeKeys
	used := scope{date: "20130524", region: "us-east-1", service: service}
	want := used.key("secret")
	require.Equal(t, want, keys.derive(used, "secret"))
	require.Empty(t, keys.recent, "only proven keys are remembered")
	keys.remember(used, "secret", want)
	for i := range 10 * scopeKeysSize {
		other := scope{date: "20130524", region: fmt.Sprint("region-", i), service: service}
		keys.remember(other, "secret", other.key("secret"))
		if i%(scopeKeysSize/2) == 0 {
			require.Same(t, &want[0], &keys.derive(used, "secret")[0], "a key in use stays")
		}
	}
	require.LessOrEqual(t, len(keys.recent)+len(keys.older), 2*scopeKeysSize)
	for name, other := range map[string]scope{
		"another day":    {date: "20130525", region: "us-east-1", service: service},
		"another region": {date: "20130524", region: "us-east-2", service: service},
	} {
		require.Equal(t, other.key("secret"), keys.derive(other, "secret"), name)
	}
	require.NotEqual(t, want, keys.derive(used, "another secret"))
}
