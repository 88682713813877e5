package kube

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/sts"
)

// MayScrape tells whether the bearer of the token may read the controller's metrics: by the right that the platform's
// own proxies ask for, get on deployments/prometheus-metrics of the component. The token is one for the apiserver, as
// Prometheus has it. The error means that the apiserver could not be asked.
func (r *Reviews) MayScrape(ctx context.Context, token string) (bool, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	answer, err := r.tokens.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("review token: %w", err)
	}
	if !answer.Status.Authenticated {
		return false, nil
	}
	user := answer.Status.User
	extra := make(map[string][]string, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = values
	}
	id := sts.Identity{Username: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra}
	return r.allowed(ctx, id, &authorizationv1.ResourceAttributes{
		Namespace: names.Namespace, Name: names.ControllerApp, Verb: "get",
		Group: "apps", Version: "v1", Resource: "deployments", Subresource: "prometheus-metrics",
	})
}
