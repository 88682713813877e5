package node_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/deckhouse/system-s3/tests/sandbox/node"
)

func TestParse(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		number int
	}{
		"node-1":     {reason: "the usual name", number: 1},
		"big-box-12": {reason: "any name with a number", number: 12},
		"node":       {reason: "no number, no addresses"},
		"node-0":     {reason: "numbers start at 1"},
		"node-01":    {reason: "one name for one number"},
		"node-9999":  {reason: "no room in the networks"},
		"-1":         {reason: "not a DNS name"},
		"../node-1":  {reason: "a name is also a folder"},
		"":           {reason: "empty"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := node.Parse(name)
			assert.Equal(t, c.number == 0, err != nil, c.reason)
			assert.Equal(t, c.number, got.Address.Number, c.reason)
		})
	}
}
