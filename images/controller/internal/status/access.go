package status

import (
	"cmp"
	"slices"
	"strings"

	"github.com/deckhouse/system-s3/lib/names"
)

// Access is who may do what, as RBAC grants it: the same rules that the STS endpoint asks the apiserver about.
type Access struct {
	Unread bool
	// Everywhere may use every bucket of the cluster.
	Everywhere []Grantee
	Rows       []AccessRow
}

// AccessRow is a bucket with those who may use it, besides those who may use every bucket.
type AccessRow struct {
	Namespace, Name string
	Grantees        []Grantee
}

// Grantee is somebody with what they may do.
type Grantee struct {
	Who         string
	Read, Write bool
}

// May spells it out.
func (g Grantee) May() string {
	switch {
	case g.Read && g.Write:
		return "read and write"
	case g.Write:
		return "write"
	default:
		return "read"
	}
}

// grant is what a rule of a bound role gives.
type grant struct {
	namespace string // empty for all
	bucket    string // empty for all
	subject   Subject
	read      bool
	write     bool
}

func access(w World, shown Buckets) Access {
	a := Access{Unread: w.unread(SourceAccess)}
	given := grants(w)
	a.Everywhere = collect(given, func(g grant) bool { return g.namespace == "" && g.bucket == "" })
	byNamespace := map[string][]grant{}
	for _, g := range given {
		byNamespace[g.namespace] = append(byNamespace[g.namespace], g)
	}
	for _, b := range shown.Rows {
		own := slices.Concat(byNamespace[b.Namespace], byNamespace[""])
		a.Rows = append(a.Rows, AccessRow{Namespace: b.Namespace, Name: b.Name, Grantees: collect(own, func(g grant) bool {
			return (g.bucket == "" || g.bucket == b.Name) && (g.namespace != "" || g.bucket != "")
		})})
	}
	return a
}

// grants unfolds bindings and roles. A binding to a role that does not exist grants nothing, as in Kubernetes.
func grants(w World) []grant {
	type key struct{ namespace, name string }
	rules := map[key][]Rule{}
	for _, r := range w.Roles {
		rules[key{r.Namespace, r.Name}] = r.Rules
	}
	var all []grant
	for _, b := range w.Bindings {
		for _, rule := range rules[key{b.RoleNamespace, b.Role}] {
			read, write := rule.grants(names.ReadSubresource), rule.grants(names.WriteSubresource)
			if !read && !write {
				continue
			}
			buckets := rule.Names
			if len(buckets) == 0 {
				buckets = []string{""}
			}
			for _, bucket := range buckets {
				for _, subject := range b.Subjects {
					all = append(all, grant{b.Namespace, bucket, subject, read, write})
				}
			}
		}
	}
	return all
}

// Concerns tells whether the rule says anything about the objects of buckets; all others need not be remembered.
func (r Rule) Concerns() bool {
	return r.grants(names.ReadSubresource) || r.grants(names.WriteSubresource)
}

// grants tells whether the rule allows `get` of the subresource, by the rules of Kubernetes: a star stands for all
// resources or, before a slash, for a subresource of all; "systembuckets/*" stands for nothing.
func (r Rule) grants(subresource string) bool {
	has := func(list []string, wanted ...string) bool {
		return slices.ContainsFunc(list, func(each string) bool { return each == "*" || slices.Contains(wanted, each) })
	}
	return has(r.Groups, names.Group) && has(r.Verbs, "get") &&
		has(r.Resources, names.Resource+"/"+subresource, "*/"+subresource)
}

// collect merges what the same subject gets by several ways.
func collect(given []grant, wanted func(grant) bool) []Grantee {
	merged := map[Subject]Grantee{}
	for _, g := range given {
		if !wanted(g) {
			continue
		}
		known := merged[g.subject]
		merged[g.subject] = Grantee{Who: spell(g.subject), Read: known.Read || g.read, Write: known.Write || g.write}
	}
	var all []Grantee
	for _, g := range merged {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b Grantee) int { return cmp.Compare(a.Who, b.Who) })
	return all
}

const accountsPrefix = "system:serviceaccounts:"

func spell(s Subject) string {
	namespace, ofNamespace := strings.CutPrefix(s.Name, accountsPrefix)
	switch {
	case s.Kind == "ServiceAccount":
		return "ServiceAccount " + s.Namespace + "/" + s.Name
	case s.Kind == "Group" && s.Name == "system:serviceaccounts":
		return "every ServiceAccount"
	case s.Kind == "Group" && ofNamespace:
		return "every ServiceAccount of " + namespace
	case s.Kind == "Group" && s.Name == "system:authenticated":
		return "everybody with an identity"
	default:
		return s.Kind + " " + s.Name
	}
}
