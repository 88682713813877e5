package page

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCacheKeepsWhatThePageReads(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{
		Namespace: "n", Name: "x", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"},
		Annotations: map[string]string{"long": "text"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
	kept := metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "u", ResourceVersion: "7"}
	ours := rbacv1.PolicyRule{APIGroups: []string{"storage.deckhouse.io"}, Resources: []string{"systembuckets/read"}, Verbs: []string{"get"}}
	other := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}}
	ref := rbacv1.RoleRef{Kind: "Role", Name: "r"}

	for _, c := range []struct{ in, want any }{
		{&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{other, ours}}, &rbacv1.Role{ObjectMeta: kept, Rules: []rbacv1.PolicyRule{ours}}},
		{&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{other}, AggregationRule: &rbacv1.AggregationRule{}}, &rbacv1.ClusterRole{ObjectMeta: kept}},
		{&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref}, &rbacv1.RoleBinding{ObjectMeta: kept, RoleRef: ref}},
		{&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref}, &rbacv1.ClusterRoleBinding{ObjectMeta: kept, RoleRef: ref}},
		{&corev1.Event{ObjectMeta: meta, Reason: "r"}, &corev1.Event{ObjectMeta: kept, Reason: "r"}},
		{"a tombstone", "a tombstone"},
	} {
		got, err := cut(c.in)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}
