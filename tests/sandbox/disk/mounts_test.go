package disk

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseMounts(t *testing.T) {
	t.Parallel()

	const text = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 7:0 / /sand/box/a rw - xfs /dev/loop0 rw
31 30 0:5 / /sand/box/a/with\040space rw - tmpfs memory rw
32 22 0:6 / /sand/boxes rw - tmpfs memory rw
short line
33 22 0:7 / /sand/box rw - tmpfs memory rw
`

	cases := map[string]struct {
		reason, folder string
		want           []string
	}{
		"below":   {reason: "everything below, neither the folder itself nor its namesakes", folder: "/sand/box", want: []string{"/sand/box/a", "/sand/box/a/with space"}},
		"nothing": {reason: "nothing is mounted there", folder: "/elsewhere"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, parseMounts(text, c.folder), c.reason)
		})
	}
}

func TestUnescape(t *testing.T) {
	t.Parallel()

	for from, to := range map[string]string{`a`: "a", `a\040b`: "a b", `a\134`: `a\`, `a\`: `a\`, `a\9zz`: `a\9zz`} {
		assert.Equal(t, to, unescape(from), from)
	}
}
