// Package kube asks Kubernetes on behalf of lib/sts: whose token it is, what RBAC grants to its owner, which
// SystemBuckets exist. It decides nothing and keeps no answer: what RBAC takes away is refused at the next request.
package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/sts"
)

// Throughput of the client that reviews are made with: requests a second, and how many may come at once. A negative
// QPS is no limit.
type Throughput struct {
	QPS   float32
	Burst int
}

// Unlimited is for whoever bounds the number of reviews under way by itself.
func Unlimited() Throughput { return Throughput{QPS: -1} }

// Reviews makes TokenReviews and SubjectAccessReviews.
type Reviews struct {
	tokens authentication.TokenReviewInterface
	access authorization.SubjectAccessReviewInterface
}

// NewReviews returns Reviews with a client of its own, so that exchanges of keys and the work of the controller don't
// starve each other.
func NewReviews(config *rest.Config, throughput Throughput) (*Reviews, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.Burst, own.RateLimiter = throughput.QPS, throughput.Burst, nil
	transport, err := reviewsTransport(own)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfigAndClient(own, &http.Client{Transport: transport})
	if err != nil {
		return nil, fmt.Errorf("make client for reviews: %w", err)
	}
	return ReviewsOf(client), nil
}

const (
	dialTimeout = 2 * time.Second
	idleTimeout = 90 * time.Second
	// pingAfter is how long a connection may be silent, pingTimeout how long it then has to show that it lives.
	pingAfter   = time.Second
	pingTimeout = 1500 * time.Millisecond
)

// reviewsTransport notices within seconds that the apiserver at the other end is gone. All reviews share one connection
// of HTTP/2, which costs the least, and client-go would hold on to it for 45 seconds, longer than any client of STS
// waits.
func reviewsTransport(config *rest.Config) (http.RoundTripper, error) {
	secured, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("make client for reviews: %w", err)
	}
	transport, err := rest.HTTPWrappersForConfig(config, &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		Proxy:               config.Proxy,
		TLSClientConfig:     secured,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     idleTimeout,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		DisableCompression:  true,
	})
	if err != nil {
		return nil, fmt.Errorf("make client for reviews: %w", err)
	}
	return transport, nil
}

// ReviewsOf returns Reviews made with the client.
func ReviewsOf(client kubernetes.Interface) *Reviews {
	return &Reviews{
		tokens: client.AuthenticationV1().TokenReviews(),
		access: client.AuthorizationV1().SubjectAccessReviews(),
	}
}

// Review tells whose token it is. The token is reviewed for the module's own audience only: never for the apiserver's,
// whose tokens may live a year. Errors: sts.ErrTokenRefused, or that the apiserver could not be asked.
func (r *Reviews) Review(ctx context.Context, token string) (sts.Identity, error) {
	return r.owner(ctx, token, names.Audience)
}

// owner tells whose token it is; without an audience the token must be one for the apiserver.
func (r *Reviews) owner(ctx context.Context, token string, audiences ...string) (sts.Identity, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
	answer, err := r.tokens.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return sts.Identity{}, fmt.Errorf("review token: %w", err)
	}
	if !answer.Status.Authenticated {
		return sts.Identity{}, fmt.Errorf("%w: %s", sts.ErrTokenRefused, answer.Status.Error)
	}
	user := answer.Status.User
	extra := make(map[string][]string, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = values
	}
	return sts.Identity{
		Username: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra, Audiences: answer.Status.Audiences,
	}, nil
}

var errNoName = errors.New("review of access without a namespace or a name would ask about all of them")

// Authorize tells which of the permissions that the role asks for RBAC grants. The reviews run side by side, and each
// is asked with everything that the apiserver told about the identity: bindings may be to its groups.
func (r *Reviews) Authorize(ctx context.Context, id sts.Identity, role access.Role) (access.Permission, error) {
	if role.Namespace == "" || role.Name == "" {
		return 0, errNoName
	}
	asked := role.Asks()
	allowed := make([]bool, len(asked))
	group, ctx := errgroup.WithContext(ctx)
	for i, permission := range asked {
		group.Go(func() error {
			var err error
			allowed[i], err = r.allowed(ctx, id, attributes(role, permission))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	var granted access.Permission
	for i, permission := range asked {
		if allowed[i] {
			granted |= permission
		}
	}
	return granted, nil
}

func (r *Reviews) allowed(ctx context.Context, id sts.Identity, what *authorizationv1.ResourceAttributes) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(id.Extra))
	for key, values := range id.Extra {
		extra[key] = values
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: what, User: id.Username, UID: id.UID, Groups: id.Groups, Extra: extra,
	}}
	answer, err := r.access.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("review access to %s/%s: %w", what.Resource, what.Subresource, err)
	}
	return answer.Status.Allowed, nil
}

func attributes(role access.Role, permission access.Permission) *authorizationv1.ResourceAttributes {
	subresource := names.ReadSubresource
	if permission == access.Write {
		subresource = names.WriteSubresource
	}
	return &authorizationv1.ResourceAttributes{
		Namespace: role.Namespace, Name: role.Name, Verb: "get",
		Group: names.Group, Version: names.Version, Resource: names.Resource, Subresource: subresource,
	}
}
