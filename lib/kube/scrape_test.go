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
	"github.com/deckhouse/system-s3/lib/names"
)

func TestMayScrape(t *testing.T) {
	cases := map[string]struct {
		reason    string
		known     bool
		allowed   bool
		tokenErr  error
		accessErr error
		want      bool
	}{
		"allowed":          {reason: "RBAC grants it", known: true, allowed: true, want: true},
		"not allowed":      {reason: "somebody else of the cluster", known: true},
		"not known":        {reason: "RBAC is not asked about strangers", allowed: true},
		"apiserver down":   {reason: "nothing is known of the token", tokenErr: errDown},
		"authorizer down":  {reason: "nothing is known of the right", known: true, accessErr: errDown},
		"neither answered": {reason: "the first error is told", tokenErr: errDown, accessErr: errDown},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("create", "tokenreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
				spec := action.(kubetesting.CreateAction).GetObject().(*authenticationv1.TokenReview).Spec //nolint:forcetypeassert // the reactor's resource
				require.Equal(t, authenticationv1.TokenReviewSpec{Token: "the token"}, spec, "the apiserver's own audience")
				status := authenticationv1.TokenReviewStatus{Authenticated: c.known, User: authenticationv1.UserInfo{Username: "p", Groups: []string{"g"}}}
				return true, &authenticationv1.TokenReview{Status: status}, c.tokenErr
			})
			client.PrependReactor("create", "subjectaccessreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
				spec := action.(kubetesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).Spec //nolint:forcetypeassert // the reactor's resource
				require.Equal(t, "p", spec.User)
				require.Equal(t, []string{"g"}, spec.Groups)
				require.Equal(t, &authorizationv1.ResourceAttributes{
					Namespace: names.Namespace, Name: "controller", Verb: "get",
					Group: "apps", Version: "v1", Resource: "deployments", Subresource: "prometheus-metrics",
				}, spec.ResourceAttributes)
				return true, &authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: c.allowed}}, c.accessErr
			})
			got, err := kube.ReviewsOf(client).MayScrape(t.Context(), "the token")
			require.Equal(t, c.want, got, c.reason)
			require.Equal(t, c.tokenErr != nil || c.accessErr != nil, err != nil, c.reason)
		})
	}
}
