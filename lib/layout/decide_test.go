package layout_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/deckhouse/system-s3/lib/layout"
)

// world is a story about a cluster, told from its emptiest state on.
type world struct{ layout.World }

func cluster(names ...string) world {
	w := world{}
	for _, name := range names {
		w.Nodes = append(w.Nodes, layout.Node{ID: "id-" + name, Name: name, Presence: layout.Up})
	}
	w.Factor = len(names)
	return w
}

func (w world) factor(factor int) world { w.Factor = factor; return w }

func (w world) presence(name string, presence layout.Presence) world {
	w.Nodes = slices.Clone(w.Nodes)
	for i := range w.Nodes {
		if w.Nodes[i].Name == name {
			w.Nodes[i].Presence = presence
		}
	}
	return w
}

func (w world) id(name, id string) world {
	w.Nodes = slices.Clone(w.Nodes)
	for i := range w.Nodes {
		if w.Nodes[i].Name == name {
			w.Nodes[i].ID = id
		}
	}
	return w
}

func (w world) version(version int) world { w.Layout.Version = version; return w }

func (w world) roles(names ...string) world {
	for _, name := range names {
		w.Layout.Roles = append(w.Layout.Roles, role(name))
	}
	return w
}

func (w world) staged(changes ...layout.Change) world {
	w.Layout.Staged = append(w.Layout.Staged, changes...)
	return w
}

func (w world) stagedParameters() world { w.Layout.StagedParameters = true; return w }

func (w world) draining() world { w.Layout.Draining = true; return w }

func role(name string) layout.Role {
	return layout.Role{ID: "id-" + name, Zone: name, Capacity: layout.Capacity}
}

func add(name string) layout.Change { return layout.Change{Role: role(name)} }

func remove(name string) layout.Change {
	return layout.Change{Role: layout.Role{ID: "id-" + name}, Remove: true}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	three := func() world { return cluster("a", "b", "c") }
	cases := map[string]struct {
		reason string
		world  world
		want   layout.Step // Message is a part of the message
	}{
		"first layout of one": {
			reason: "a single replica is a whole set", world: cluster("a"),
			want: layout.Step{Kind: layout.Stage, Changes: []layout.Change{add("a")}, Reason: "Starting", Message: "version 1"},
		},
		"first layout of three": {
			reason: "all are up", world: three(),
			want: layout.Step{
				Kind: layout.Stage, Changes: []layout.Change{add("a"), add("b"), add("c")}, Reason: "Starting",
				Message: "version 1",
			},
		},
		"order of nodes": {
			reason: "changes come ordered by id, whatever the order of the plan", world: cluster("c", "a", "b"),
			want: layout.Step{
				Kind: layout.Stage, Changes: []layout.Change{add("a"), add("b"), add("c")}, Reason: "Starting",
				Message: "version 1",
			},
		},
		"one is starting": {
			reason: "a layout is never made over a part of the set", world: three().presence("b", layout.Starting),
			want: layout.Step{Kind: layout.Wait, Reason: "Starting", Message: "Waiting for b to start and to connect, 2 of 3"},
		},
		"one has no place": {
			reason: "a new installation with fewer nodes than the factor does not start",
			world:  three().presence("b", layout.Homeless).presence("c", layout.Starting),
			want: layout.Step{
				Kind: layout.Refuse, Reason: "LayoutFailed",
				Message: "needs 3 replicas with replication factor 3, but only 2 of them have a node; without one: b",
			},
		},
		"two have no place": {
			reason: "the numbers are told", world: three().presence("b", layout.Homeless).presence("c", layout.Homeless),
			want: layout.Step{Kind: layout.Refuse, Reason: "LayoutFailed", Message: "only 1 of them have a node; without one: b, c"},
		},
		"exactly ours is staged": {
			reason: "a pass that died after staging is gone on with", world: three().staged(add("c"), add("a"), add("b")),
			want: layout.Step{Kind: layout.Apply, Version: 1, Reason: "Starting", Message: "version 1"},
		},
		"ours is staged while one left": {
			reason: "between staging and applying a node may go", world: three().staged(add("a"), add("b"), add("c")).
				presence("c", layout.Starting),
			want: layout.Step{Kind: layout.Wait, Reason: "Starting", Message: "2 of 3"},
		},
		"a part of ours is staged": {
			reason: "staging is all or nothing", world: three().staged(add("a")),
			want: layout.Step{Kind: layout.Revert, Reason: "Starting", Message: "not the planned ones"},
		},
		"more than ours is staged": {
			reason: "a foreign role would be applied with ours", world: three().staged(add("a"), add("b"), add("c"), add("x")),
			want: layout.Step{Kind: layout.Revert, Reason: "Starting", Message: "not the planned ones"},
		},
		"another capacity is staged": {
			reason: "somebody staged by hand", world: cluster("a").staged(layout.Change{Role: layout.Role{
				ID: "id-a", Zone: "a", Capacity: 1024,
			}}),
			want: layout.Step{Kind: layout.Revert, Reason: "Starting", Message: "not the planned ones"},
		},
		"parameters are staged with ours": {
			reason: "they would be applied with ours", world: cluster("a").staged(add("a")).stagedParameters(),
			want: layout.Step{Kind: layout.Revert, Reason: "Starting", Message: "not the planned ones"},
		},
		"a stale removal is staged": {
			reason: "a removal of a node without a role changes nothing and lingers for ever",
			world:  cluster("a").staged(add("a"), remove("gone")),
			want:   layout.Step{Kind: layout.Apply, Version: 1, Reason: "Starting", Message: "version 1"},
		},
		"only a stale removal is staged": {
			reason: "it does not keep the layout from being as planned",
			world:  cluster("a").version(4).roles("a").staged(remove("gone")),
			want:   layout.Step{Kind: layout.Steady, Reason: "Ready", Message: "as planned"},
		},
		"as planned": {
			reason: "the quiet case", world: three().version(1).roles("a", "b", "c"),
			want: layout.Step{Kind: layout.Steady, Reason: "Ready", Message: "as planned"},
		},
		"as planned with one down": {
			reason: "a layout does not follow outages", world: three().version(1).roles("a", "b", "c").
				presence("a", layout.Homeless),
			want: layout.Step{Kind: layout.Steady, Reason: "Ready", Message: "as planned"},
		},
		"as planned and a removal staged": {
			reason: "the next apply by anybody would take the only copy away",
			world:  three().version(1).roles("a", "b", "c").staged(remove("c")),
			want:   layout.Step{Kind: layout.Revert, Reason: "Ready", Message: "thrown away"},
		},
		"as planned and parameters staged": {
			reason: "the same", world: cluster("a").version(1).roles("a").stagedParameters(),
			want: layout.Step{Kind: layout.Revert, Reason: "Ready", Message: "thrown away"},
		},
		"a foreign node has a role": {
			reason: "it may hold the only copy", world: cluster("a").version(3).roles("a", "zzz"),
			want: layout.Step{Kind: layout.Refuse, Reason: "LayoutFailed", Message: "id-zzz"},
		},
		"a zone changes": {
			reason: "a role is compared as a whole", world: cluster("a").version(2).roles().withRole(layout.Role{
				ID: "id-a", Zone: "elsewhere", Capacity: layout.Capacity,
			}),
			want: layout.Step{Kind: layout.Stage, Changes: []layout.Change{add("a")}, Reason: "Starting", Message: "version 3"},
		},
		"an older version is live": {
			reason: "versions are not piled up", world: cluster("a", "b").version(2).roles("a").draining(),
			want: layout.Step{Kind: layout.Wait, Reason: "Starting", Message: "take over the present layout"},
		},
		"fewer replicas than the factor": {
			reason: "the plan makes no sense and the numbers say why", world: cluster("a", "b").factor(3),
			want: layout.Step{Kind: layout.Refuse, Reason: "LayoutFailed", Message: "2 replicas for a replication factor of 3"},
		},
		"no factor": {
			reason: "a plan that was not read", world: cluster("a").factor(0),
			want: layout.Step{Kind: layout.Refuse, Reason: "LayoutFailed", Message: "factor of 0"},
		},
		"an identity twice": {
			reason: "two Pods with one key would be one node", world: cluster("a", "b").id("b", "id-a"),
			want: layout.Step{Kind: layout.Refuse, Reason: "LayoutFailed", Message: "identity of b"},
		},
		"no identity": {
			reason: "the Secret lacks a node key", world: cluster("a", "b").id("a", ""),
			want: layout.Step{Kind: layout.Refuse, Reason: "LayoutFailed", Message: "identity of a"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := layout.Decide(c.world.World)
			assert.Contains(t, got.Message, c.want.Message, c.reason)
			got.Message, c.want.Message = "", ""
			assert.Equal(t, c.want, got, c.reason)
		})
	}
}

func (w world) withRole(role layout.Role) world {
	w.Layout.Roles = append(w.Layout.Roles, role)
	return w
}

// TestDecideEnds carries every step out on a simulated cluster: from any staging area the way ends in Steady.
func TestDecideEnds(t *testing.T) {
	t.Parallel()
	starts := map[string]world{
		"empty":       cluster("a", "b", "c"),
		"half staged": cluster("a", "b", "c").staged(add("a"), add("x")).stagedParameters(),
		"one role":    cluster("a", "b", "c").factor(1).version(1).roles("a"),
		"leftover":    cluster("a").version(1).roles("a").staged(remove("a")),
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, kinds := start.World, []layout.Kind{}
			for len(kinds) < 10 {
				step := layout.Decide(w)
				kinds = append(kinds, step.Kind)
				if step.Kind == layout.Steady {
					break
				}
				w.Layout = carryOut(w.Layout, step)
			}
			assert.Equal(t, layout.Steady, kinds[len(kinds)-1], "steps taken: %v", kinds)
		})
	}
}

func carryOut(l layout.Layout, step layout.Step) layout.Layout {
	switch step.Kind {
	case layout.Revert:
		l.Staged, l.StagedParameters = nil, false
	case layout.Stage:
		l.Staged = append(slices.Clone(l.Staged), step.Changes...)
	case layout.Apply:
		roles := slices.Clone(l.Roles)
		for _, change := range l.Staged {
			roles = slices.DeleteFunc(roles, func(r layout.Role) bool { return r.ID == change.ID })
			if !change.Remove {
				roles = append(roles, change.Role)
			}
		}
		l.Roles, l.Staged, l.Version = roles, nil, step.Version
	case layout.Steady, layout.Wait, layout.Refuse:
	}
	return l
}

func TestDecideLeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	w := cluster("b", "a").staged(remove("z"), add("b"), add("a"))
	before := slices.Clone(w.Layout.Staged)
	layout.Decide(w.World)
	assert.Equal(t, before, w.Layout.Staged, "a question only answers")
}
