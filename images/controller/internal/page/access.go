package page

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/images/controller/internal/status"
	"github.com/deckhouse/system-s3/lib/names"
)

// Cached says what of the objects that only the page reads is kept in memory. A cluster has thousands of roles and
// bindings: of roles stay the rules about buckets, of bindings who is bound to what, of events those of ours.
func Cached() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&rbacv1.Role{}:               {Transform: cut},
		&rbacv1.ClusterRole{}:        {Transform: cut},
		&rbacv1.RoleBinding{}:        {Transform: cut},
		&rbacv1.ClusterRoleBinding{}: {Transform: cut},
		&corev1.Event{}:              {Field: fields.OneTermEqualSelector("reportingComponent", names.Module), Transform: cut},
	}
}

// cut takes away what the page does not read.
func cut(object any) (any, error) {
	switch each := object.(type) {
	case *rbacv1.Role:
		each.ObjectMeta, each.Rules = bare(each.ObjectMeta), concerning(each.Rules)
	case *rbacv1.ClusterRole:
		each.ObjectMeta, each.Rules, each.AggregationRule = bare(each.ObjectMeta), concerning(each.Rules), nil
	case *rbacv1.RoleBinding:
		each.ObjectMeta = bare(each.ObjectMeta)
	case *rbacv1.ClusterRoleBinding:
		each.ObjectMeta = bare(each.ObjectMeta)
	case *corev1.Event:
		each.ObjectMeta = bare(each.ObjectMeta)
	}
	return object, nil
}

func bare(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
}

func concerning(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var kept []rbacv1.PolicyRule
	for _, r := range rules {
		if rule(r).Concerns() {
			kept = append(kept, *r.DeepCopy())
		}
	}
	return kept
}

func rule(r rbacv1.PolicyRule) status.Rule {
	return status.Rule{Groups: r.APIGroups, Resources: r.Resources, Names: r.ResourceNames, Verbs: r.Verbs}
}

func (o *Observer) access(ctx context.Context, w *status.World) error {
	var roles rbacv1.RoleList
	var clusterRoles rbacv1.ClusterRoleList
	var bindings rbacv1.RoleBindingList
	var clusterBindings rbacv1.ClusterRoleBindingList
	for _, list := range []client.ObjectList{&roles, &clusterRoles, &bindings, &clusterBindings} {
		if err := o.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
	}
	for _, r := range roles.Items {
		addRole(w, r.Namespace, r.Name, r.Rules)
	}
	for _, r := range clusterRoles.Items {
		addRole(w, "", r.Name, r.Rules)
	}
	for _, b := range bindings.Items {
		addBinding(w, b.Namespace, b.RoleRef, b.Subjects)
	}
	for _, b := range clusterBindings.Items {
		addBinding(w, "", b.RoleRef, b.Subjects)
	}
	return nil
}

func addRole(w *status.World, namespace, name string, rules []rbacv1.PolicyRule) {
	role := status.Role{Namespace: namespace, Name: name}
	for _, r := range rules {
		role.Rules = append(role.Rules, rule(r))
	}
	if len(role.Rules) > 0 {
		w.Roles = append(w.Roles, role)
	}
}

func addBinding(w *status.World, namespace string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	b := status.Binding{Namespace: namespace, Role: ref.Name}
	if ref.Kind == "Role" {
		b.RoleNamespace = namespace
	}
	for _, s := range subjects {
		b.Subjects = append(b.Subjects, status.Subject{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name})
	}
	w.Bindings = append(w.Bindings, b)
}
