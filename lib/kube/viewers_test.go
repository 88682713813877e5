package kube_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/deckhouse/system-s3/lib/kube"
	"github.com/deckhouse/system-s3/lib/sts"
)

func TestView(t *testing.T) {
	person := authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
		Username: "admin@example.test", UID: "1", Groups: []string{"admins"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}},
	}}
	cases := map[string]struct {
		reason      string
		token       authenticationv1.TokenReviewStatus
		granted     bool
		tokenErr    error
		accessErr   error
		is          error
		wantAllowed bool
	}{
		"may":           {reason: "RBAC grants it", token: person, granted: true, wantAllowed: true},
		"may not":       {reason: "RBAC does not", token: person},
		"refused":       {reason: "nobody", token: authenticationv1.TokenReviewStatus{Error: "expired"}, granted: true, is: sts.ErrTokenRefused},
		"no tokens":     {reason: "nothing is known", tokenErr: errDown, is: errDown},
		"no permission": {reason: "nothing is known", token: person, granted: true, accessErr: errDown, is: errDown},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("create", "tokenreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
				review := action.(kubetesting.CreateAction).GetObject().(*authenticationv1.TokenReview) //nolint:forcetypeassert // the reactor's resource
				require.Equal(t, authenticationv1.TokenReviewSpec{Token: "the token"}, review.Spec, "for the apiserver, no audience of ours")
				return true, &authenticationv1.TokenReview{Status: c.token}, c.tokenErr
			})
			client.PrependReactor("create", "subjectaccessreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
				review := action.(kubetesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview) //nolint:forcetypeassert // the reactor's resource
				require.Equal(t, authorizationv1.SubjectAccessReviewSpec{
					User: "admin@example.test", UID: "1", Groups: []string{"admins"}, Extra: map[string]authorizationv1.ExtraValue{"k": {"v"}},
					ResourceAttributes: &authorizationv1.ResourceAttributes{
						Verb: "get", Group: "deckhouse.io", Version: "v1alpha1", Resource: "modules", Subresource: "page", Name: "system-s3",
					},
				}, review.Spec)
				return true, &authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: c.granted}}, c.accessErr
			})
			_, allowed, err := kube.ReviewsOf(client).View(t.Context(), "the token")
			require.ErrorIs(t, err, c.is, c.reason)
			require.Equal(t, c.wantAllowed, allowed && err == nil, c.reason)
		})
	}
}
