package kube

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/deckhouse/system-s3/lib/names"
)

// View tells who the owner of a token for the apiserver is, and whether RBAC lets them see the status page: `get` on
// `modules/page` of the module. A token that STS takes is refused here: it is not for the apiserver. Errors:
// sts.ErrTokenRefused, or that the apiserver could not be asked.
func (r *Reviews) View(ctx context.Context, token string) (who string, allowed bool, err error) {
	id, err := r.owner(ctx, token)
	if err != nil {
		return "", false, err
	}
	allowed, err = r.allowed(ctx, id, &authorizationv1.ResourceAttributes{
		Verb: "get", Group: names.ModuleGroup, Version: names.Version, Resource: names.ModuleResource,
		Subresource: names.PageSubresource, Name: names.Module,
	})
	return id.Username, allowed, err
}
