package status_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/controller/internal/status"
)

const group = "storage.deckhouse.io"

func rule(groups, resources, names, verbs []string) status.Rule {
	return status.Rule{Groups: groups, Resources: resources, Names: names, Verbs: verbs}
}

func list(each ...string) []string { return each }

// TestRules has a row for each way in which a rule may, or may not, open a bucket. Kubernetes decides the same way.
func TestRules(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		rule status.Rule
		want string
	}{
		"read":               {rule(list(group), list("systembuckets/read"), list("logs"), list("get")), "read"},
		"write":              {rule(list(group), list("systembuckets/write"), list("logs"), list("get")), "write"},
		"both":               {rule(list(group), list("systembuckets/read", "systembuckets/write"), list("logs"), list("get")), "read and write"},
		"any name":           {rule(list(group), list("systembuckets/read"), nil, list("get")), "read"},
		"star of resources":  {rule(list(group), list("*"), nil, list("get")), "read and write"},
		"star before slash":  {rule(list(group), list("*/write"), nil, list("get")), "write"},
		"star after slash":   {rule(list(group), list("systembuckets/*"), nil, list("get")), ""},
		"the resource alone": {rule(list(group), list("systembuckets"), nil, list("*")), ""},
		"star of verbs":      {rule(list(group), list("systembuckets/read"), nil, list("*")), "read"},
		"another verb":       {rule(list(group), list("systembuckets/read"), nil, list("list")), ""},
		"star of groups":     {rule(list("*"), list("systembuckets/read"), nil, list("get")), "read"},
		"another group":      {rule(list(""), list("*"), nil, list("*")), ""},
		"another name":       {rule(list(group), list("systembuckets/read"), list("other"), list("get")), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world(buckets(bucket("d8-a", "logs", 1, 0)), func(w *status.World) {
				w.Roles = []status.Role{{Namespace: "d8-a", Name: "r", Rules: []status.Rule{c.rule}}}
				w.Bindings = []status.Binding{{Namespace: "d8-a", RoleNamespace: "d8-a", Role: "r", Subjects: []status.Subject{{Kind: "ServiceAccount", Namespace: "d8-a", Name: "app"}}}}
			})
			grantees := status.Look(w, status.Query{}).Access.Rows[0].Grantees
			if c.want == "" {
				require.Empty(t, grantees)
				return
			}
			require.Len(t, grantees, 1)
			require.Equal(t, "ServiceAccount d8-a/app", grantees[0].Who)
			require.Equal(t, c.want, grantees[0].May())
		})
	}
}

func TestBindings(t *testing.T) {
	t.Parallel()
	read, write := rule(list(group), list("systembuckets/read"), nil, list("get")), rule(list(group), list("systembuckets/write"), list("logs"), list("get"))
	user := func(name string) []status.Subject { return []status.Subject{{Kind: "User", Name: name}} }
	w := world(buckets(bucket("d8-a", "logs", 1, 0), bucket("d8-b", "logs", 1, 0)), func(w *status.World) {
		w.Roles = []status.Role{
			{Namespace: "d8-a", Name: "r", Rules: []status.Rule{read, write}},
			{Name: "r", Rules: []status.Rule{read}},
			{Name: "named", Rules: []status.Rule{write}},
		}
		w.Bindings = []status.Binding{
			{Namespace: "d8-a", RoleNamespace: "d8-a", Role: "r", Subjects: user("both")},
			{Namespace: "d8-b", Role: "r", Subjects: user("by a ClusterRole in one namespace")},
			{Role: "r", Subjects: []status.Subject{{Kind: "Group", Name: "system:serviceaccounts:d8-x"}}},
			{Role: "named", Subjects: user("every bucket of that name")},
			{Namespace: "d8-b", RoleNamespace: "d8-b", Role: "r", Subjects: user("of a Role that does not exist")},
			{Namespace: "d8-a", Role: "nothing", Subjects: user("of nothing")},
		}
	})
	got := status.Look(w, status.Query{}).Access
	require.Equal(t, []status.Grantee{{Who: "every ServiceAccount of d8-x", Read: true}}, got.Everywhere)
	require.Equal(t, []status.AccessRow{
		{Namespace: "d8-a", Name: "logs", Grantees: []status.Grantee{
			{Who: "User both", Read: true, Write: true}, {Who: "User every bucket of that name", Write: true},
		}},
		{Namespace: "d8-b", Name: "logs", Grantees: []status.Grantee{
			{Who: "User by a ClusterRole in one namespace", Read: true}, {Who: "User every bucket of that name", Write: true},
		}},
	}, got.Rows)
	require.True(t, status.Look(world(unread(status.SourceAccess)), status.Query{}).Access.Unread)
}
