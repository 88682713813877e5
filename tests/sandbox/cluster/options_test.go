package cluster

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/sandbox/node"
	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

func TestRemember(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		last   string
		given  Options
		want   Options
		fails  bool
	}{
		"new":           {reason: "the defaults", want: Options{Masters: 1, Nodes: 3}},
		"new and given": {reason: "what is given wins", given: Options{Masters: 3, Nodes: 5}, want: Options{Masters: 3, Nodes: 5}},
		"bare":          {reason: "it stays as it is", last: `{"masters":3,"nodes":4}`, want: Options{Masters: 3, Nodes: 4}},
		"one given":     {reason: "the other stays", last: `{"masters":1,"nodes":4}`, given: Options{Masters: 3}, want: Options{Masters: 3, Nodes: 4}},
		"too many":      {reason: "more masters than nodes", last: `{"masters":1,"nodes":2}`, given: Options{Masters: 3}, fails: true},
		"negative":      {reason: "no cluster", given: Options{Masters: -1}, fails: true},
		"broken":        {reason: "the file makes no sense", last: `{"masters":`, fails: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dir := statedir.Dir(t.TempDir())
			if c.last != "" {
				require.NoError(t, os.WriteFile(dir.Path(optionsFile), []byte(c.last), 0o600))
			}

			got, err := Cluster{Dir: dir}.remember(c.given)
			require.Equal(t, c.fails, err != nil, c.reason)
			assert.Equal(t, c.want, got, c.reason)

			if c.fails {
				return
			}

			again, err := Cluster{Dir: dir}.remember(Options{})
			require.NoError(t, err)
			assert.Equal(t, c.want, again, "a bare up changes nothing")
		})
	}
}

func TestWantedNodesAndTheirRoles(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason   string
		options  Options
		existing []string
		want     []string
		roles    []role
	}{
		"new":      {reason: "numbered from 1", options: Options{Masters: 1, Nodes: 2}, want: []string{"node-1", "node-2"}, roles: []role{master, worker}},
		"the same": {reason: "none is made twice", options: Options{Masters: 1, Nodes: 2}, existing: []string{"node-1", "node-2"}, want: []string{"node-1", "node-2"}, roles: []role{master, worker}},
		"lost":     {reason: "it comes again, empty", options: Options{Masters: 1, Nodes: 2}, existing: []string{"node-1"}, want: []string{"node-1", "node-2"}, roles: []role{master, worker}},
		"added": {
			reason: "it is brought up too and keeps its role", options: Options{Masters: 1, Nodes: 1},
			existing: []string{"node-1", "big-7"}, want: []string{"node-1", "big-7"}, roles: []role{master, unchanged},
		},
		"own name": {
			reason: "its number is taken", options: Options{Masters: 1, Nodes: 2},
			existing: []string{"big-2"}, want: []string{"node-1", "big-2"}, roles: []role{master, worker},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var existing []node.Node

			for _, name := range c.existing {
				n, err := node.Parse(name)
				require.NoError(t, err)

				existing = append(existing, n)
			}

			nodes, err := c.options.wanted(existing)
			require.NoError(t, err)

			var (
				names []string
				roles []role
			)

			for _, n := range nodes {
				names, roles = append(names, n.Name), append(roles, c.options.role(n))
			}

			assert.Equal(t, c.want, names, c.reason)
			assert.Equal(t, c.roles, roles, c.reason)
		})
	}

	_, err := Options{Nodes: 100000}.wanted(nil)
	assert.Error(t, err, "no room in the networks")
}
