package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/tests/demo/consumer"
)

// person acts as a user with no rights but those of the ClusterRoles, given in the namespace, or everywhere when it is
// empty.
func person(t *testing.T, name, where string, roles ...string) client.Client {
	t.Helper()
	for _, role := range roles {
		meta := metav1.ObjectMeta{Name: "e2e-" + name + "-" + role, Namespace: where}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
		subjects := []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name},
			{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name},
		}
		var binding client.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
		if where != "" {
			binding = &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
		}
		require.NoError(t, client.IgnoreAlreadyExists(site.Admin.Create(t.Context(), binding)))
		t.Cleanup(func() { _ = site.Admin.Delete(context.Background(), binding) })
	}
	config := rest.CopyConfig(site.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: site.Admin.Scheme()})
	require.NoError(t, err)
	return c
}

// attempts are what may be tried with a SystemBucket, each harmless.
func attempts(c client.Client) map[string]func(context.Context) error {
	bucket := func(name string) *v1alpha1.SystemBucket {
		return &v1alpha1.SystemBucket{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       v1alpha1.SystemBucketSpec{Size: resource.MustParse("10Mi")},
		}
	}
	return map[string]func(context.Context) error{
		"see": func(ctx context.Context) error {
			return c.List(ctx, &v1alpha1.SystemBucketList{}, client.InNamespace(namespace))
		},
		"create": func(ctx context.Context) error { return c.Create(ctx, bucket("tried"), client.DryRunAll) },
		"change": func(ctx context.Context) error {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":"2Gi"}}`))
			return c.Patch(ctx, bucket(mainBucket), patch, client.DryRunAll)
		},
		"delete": func(ctx context.Context) error { return c.Delete(ctx, bucket(mainBucket), client.DryRunAll) },
	}
}

func (s *leaving) limitsRights(t *testing.T) {
	const capability = "d8:system-capability:system-s3:"
	cases := map[string]struct {
		reason, name, where string
		roles               []string
		allowed             []string
	}{
		"editor of the namespace": {reason: "A6: users get no rights", name: "editor", where: namespace, roles: []string{"edit"}},
		"admin of the namespace":  {reason: "A6: users get no rights", name: "ns-admin", where: namespace, roles: []string{"admin"}},
		"storage viewer":          {reason: "A6", name: "storage-viewer", roles: []string{capability + "view"}, allowed: []string{"see"}},
		"storage administrator":   {reason: "A6", name: "storage-admin", roles: []string{capability + "view", capability + "edit"}, allowed: []string{"see", "create", "change", "delete"}},
		"nobody in particular":    {reason: "no role, no right", name: "nobody"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			who := person(t, c.name, c.where, c.roles...)
			for verb, attempt := range attempts(who) {
				err := attempt(t.Context())
				if slices.Contains(c.allowed, verb) {
					require.NoError(t, err, "%s: %s", c.reason, verb)
				} else {
					require.True(t, apierrors.IsForbidden(err), "%s: %s: %v", c.reason, verb, err)
				}
			}
			s.hasNoObjects(t, c.name)
		})
	}
}

// hasNoObjects checks B2: a right to a SystemBucket is none to its objects.
func (s *leaving) hasNoObjects(t *testing.T, name string) {
	t.Helper()
	account := consumer.Consumer{Name: name, Namespace: namespace, Bucket: mainBucket}
	require.NoError(t, account.ServiceAccount(t.Context(), site.Admin))
	for _, suffix := range []string{"", "/read", "/write"} {
		_, err := s.door(t).of(name, mainBucket, suffix).Retrieve(t.Context())
		require.Equal(t, "AccessDenied", code(err), fmt.Sprintf("%s asked for %q", name, suffix))
	}
}
