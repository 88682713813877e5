package kube

import (
	"context"
	"errors"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/sts"
)

// MayScrape tells whether the bearer of the token may read the controller's metrics: by the right that the platform's
// own proxies ask for, get on deployments/prometheus-metrics of the component. The token is one for the apiserver, as
// Prometheus has it. The error means that the apiserver could not be asked.
func (r *Reviews) MayScrape(ctx context.Context, token string) (bool, error) {
	id, err := r.owner(ctx, token)
	if errors.Is(err, sts.ErrTokenRefused) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return r.allowed(ctx, id, &authorizationv1.ResourceAttributes{
		Namespace: names.Namespace, Name: names.ControllerApp, Verb: "get",
		Group: "apps", Version: "v1", Resource: "deployments", Subresource: "prometheus-metrics",
	})
}
