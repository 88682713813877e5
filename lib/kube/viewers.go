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

// View tells who the owner of a token for the apiserver is, and whether RBAC lets them see the status page: `get` on
// `modules/page` of the module. A token that STS takes is refused here: it is not for the apiserver. Errors:
// sts.ErrTokenRefused, or that the apiserver could not be asked.
func (r *Reviews) View(ctx context.Context, token string) (who string, allowed bool, err error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	answer, err := r.tokens.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return "", false, fmt.Errorf("review token: %w", err)
	}
	if !answer.Status.Authenticated {
		return "", false, fmt.Errorf("%w: %s", sts.ErrTokenRefused, answer.Status.Error)
	}
	user := answer.Status.User
	extra := make(map[string][]string, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = values
	}
	id := sts.Identity{Username: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra}
	allowed, err = r.allowed(ctx, id, &authorizationv1.ResourceAttributes{
		Verb: "get", Group: names.ModuleGroup, Version: names.Version, Resource: names.ModuleResource,
		Subresource: names.PageSubresource, Name: names.Module,
	})
	return user.Username, allowed, err
}
