package sts

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
)

// Keys of Identity.Extra by which the apiserver tells the Pod that a token is bound to, and the token's own id.
const (
	extraPodName    = "authentication.kubernetes.io/pod-name"
	extraPodUID     = "authentication.kubernetes.io/pod-uid"
	extraCredential = "authentication.kubernetes.io/credential-id"
)

// exchange is one request on its way: what is known of it so far.
type exchange struct {
	handler   *Handler
	requestID string
	source    string

	request    request
	lifetime   time.Duration
	issuer     string
	identity   Identity
	subject    access.Subject
	permission access.Permission
	bucket     string // in S3
	key        access.Key
	expiration time.Time // what the client is told
}

// run goes from what costs nothing to what costs most: syntax, limits, token, rights, key.
func (e *exchange) run(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	if err := e.read(w, r); err != nil {
		return err
	}
	if !e.handler.sources.allow(e.source, e.handler.Now()) {
		return errThrottled
	}
	leave, err := e.handler.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := e.authenticate(ctx); err != nil {
		return err
	}
	if err := e.authorize(ctx); err != nil {
		return err
	}
	return e.issue()
}

func (e *exchange) read(w http.ResponseWriter, r *http.Request) error {
	var err error
	if e.request, err = readRequest(w, r); err != nil {
		return err
	}
	if e.lifetime, err = access.Lifetime(e.request.durationSeconds, e.handler.Lifetime); err != nil {
		return err
	}
	e.issuer, err = peek(e.request.token, e.handler.Now())
	return err
}

func (e *exchange) authenticate(ctx context.Context) error {
	var err error
	e.identity, err = patiently(ctx, e.handler.Limits, func(ctx context.Context) (Identity, error) {
		return e.handler.Reviewer.Review(ctx, e.request.token)
	}, ErrTokenRefused)
	if err != nil {
		return tokenError(err)
	}
	// A server that ignores the audiences of a review returns none.
	if !slices.Contains(e.identity.Audiences, names.Audience) {
		return access.ErrRejected.With("The token is not meant for the audience " + names.Audience + ".")
	}
	if e.subject, err = access.ParseSubject(e.identity.Username); err != nil {
		return err
	}
	if !e.handler.subjects.allow(e.subject.String(), e.handler.Now()) {
		return errThrottled
	}
	return nil
}

func (e *exchange) authorize(ctx context.Context) error {
	role := e.request.role
	granted, err := patiently(ctx, e.handler.Limits, func(ctx context.Context) (access.Permission, error) {
		return e.handler.Authorizer.Authorize(ctx, e.identity, role)
	}, access.ErrDenied)
	if err != nil {
		return refuse(errUnavailable, err)
	}
	if e.permission, err = role.Resolve(granted); err != nil {
		return refuse(e.denied(), err)
	}
	e.bucket, err = patiently(ctx, e.handler.Limits, func(ctx context.Context) (string, error) {
		return e.handler.Buckets.Bucket(ctx, role.Namespace, role.Name)
	}, ErrNoBucket)
	return e.bucketError(err)
}

// denied is one and the same for "no such bucket" and "not allowed", so that nobody can find out which buckets exist.
func (e *exchange) denied() access.Error {
	need := []string{names.ReadSubresource, names.WriteSubresource}
	if p := e.request.role.Permission; p != 0 {
		need = []string{p.String()}
	}
	resources := names.Resource + "/" + need[0]
	for _, other := range need[1:] {
		resources += " or " + names.Resource + "/" + other
	}
	return access.ErrDenied.With(fmt.Sprintf(
		"ServiceAccount %s/%s is not authorized to use SystemBucket %s/%s: it needs a Role and a RoleBinding in namespace %s with the verb get on %s (apiGroup %s, resourceName %s), and the SystemBucket must exist.",
		e.subject.Namespace, e.subject.Name, e.request.role.Namespace, e.request.role.Name, e.request.role.Namespace,
		resources, names.Group, e.request.role.Name))
}

func (e *exchange) issue() error {
	var err error
	expires := e.handler.Now().Add(e.lifetime)
	e.key, err = e.handler.Issuer.Issue(access.Grant{
		Bucket: e.bucket, Permission: e.permission, Subject: e.subject.String(), Expires: expires,
	})
	if err != nil {
		return refuse(errInternalFailure, err)
	}
	e.expiration = e.key.Expires.Add(-margin(e.lifetime)).Truncate(time.Second)
	if e.handler.Issued != nil {
		e.handler.Issued(Issued{
			Identity: e.identity, Namespace: e.request.role.Namespace, Name: e.request.role.Name,
			Bucket: e.bucket, Permission: e.permission, Expires: e.key.Expires,
		})
	}
	return nil
}

// margin is how much earlier than a key ends its end is announced: clients use a key until the exact second, by their
// own clocks, and a request takes its time to arrive.
func margin(lifetime time.Duration) time.Duration {
	const most, share = 30 * time.Second, 10
	return min(most, lifetime/share)
}

// first is the first of the values that the apiserver gave for the key, or nothing.
func (id Identity) first(key string) string {
	if values := id.Extra[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}
