package network

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseAlias(t *testing.T) {
	t.Parallel()

	const head = "5: s3sb0: <BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state UP\n    link/ether 32:0a:54:58:23:30 brd ff:ff:ff:ff:ff:ff\n"

	cases := map[string]struct{ reason, shown, want string }{
		"owned":  {reason: "the owner is the whole rest of the line", shown: head + "    alias /srv/a box\n", want: "/srv/a box"},
		"nobody": {reason: "a bridge that was being made", shown: head},
		"none":   {reason: "there is no bridge", shown: ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, parseAlias(c.shown), c.reason)
		})
	}
}
