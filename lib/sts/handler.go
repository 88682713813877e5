// Package sts speaks the wire protocol of AWS STS, AssumeRoleWithWebIdentity of 2011-06-15: a form comes in, XML goes
// out. It asks the interfaces declared here who presented the token and what that ServiceAccount may use, and lib/access
// for every decision. It knows no Kubernetes, writes nothing anywhere and never logs a token, a form or an address with
// a query.
package sts

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"

	"github.com/deckhouse/system-s3/lib/access"
)

var (
	// ErrTokenRefused is the answer of a TokenReviewer for a token that nobody vouches for. Any other error of it means
	// that nothing is known about the token.
	ErrTokenRefused = errors.New("token refused")
	// ErrNoBucket is the answer of Buckets for a SystemBucket that does not exist.
	ErrNoBucket = errors.New("no such SystemBucket")
)

// Identity is who presented a token, as the apiserver tells it.
type Identity struct {
	Username string
	UID      string
	Groups   []string
	Extra    map[string][]string
	// Audiences for which the token was reviewed and found valid.
	Audiences []string
}

// TokenReviewer tells whose token it is. It asks for the module's own audience. Errors: ErrTokenRefused, or that
// nothing is known.
type TokenReviewer interface {
	Review(ctx context.Context, token string) (Identity, error)
}

// Authorizer tells which of the permissions that the role asks for RBAC grants to the identity; none is no error.
type Authorizer interface {
	Authorize(ctx context.Context, id Identity, role access.Role) (access.Permission, error)
}

// Buckets tells the S3 name of a SystemBucket. Errors: ErrNoBucket, or that nothing is known.
type Buckets interface {
	Bucket(ctx context.Context, namespace, name string) (string, error)
}

// Issuer makes the key pair of a grant.
type Issuer interface {
	Issue(grant access.Grant) (access.Key, error)
}

// Issued is a key that was handed out, without the key: whom RBAC may be asked about again.
type Issued struct {
	Identity        Identity
	Namespace, Name string // of the SystemBucket
	Bucket          string // in S3
	Permission      access.Permission
	Expires         time.Time
}

// Config is what a Handler needs. All fields but Limits, Issued and Answered are required.
type Config struct {
	Reviewer   TokenReviewer
	Authorizer Authorizer
	Buckets    Buckets
	Issuer     Issuer
	// Issued is told of each key before its client is; nil when nobody keeps count.
	Issued func(Issued)
	// Answered is told of each request with its error, nil for a key, and how long it took; nil when nobody counts.
	Answered func(refused *access.Error, took time.Duration)
	Log      logr.Logger
	// Lifetime is the longest life of a key.
	Lifetime time.Duration
	// Limits of the endpoint; zero fields take the defaults.
	Limits Limits
	// Now is the clock.
	Now func() time.Time
}

// Handler answers STS requests. Use New.
type Handler struct {
	Config

	inFlight chan struct{}
	sources  *throttle
	subjects *throttle
}

// New returns the handler of the STS endpoint. It is safe for concurrent use.
func New(config Config) *Handler {
	config.Limits = config.Limits.withDefaults()
	return &Handler{
		Config:   config,
		inFlight: make(chan struct{}, config.Limits.InFlight),
		sources:  newThrottle(config.Limits.Source),
		subjects: newThrottle(config.Limits.Subject),
	}
}

// ServeHTTP answers one request, always with the XML of STS.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), h.Limits.Request)
	defer cancel()

	began := time.Now()
	e := exchange{handler: h, requestID: uuid.NewString(), source: sourceOf(r)}
	err := e.run(ctx, w, r)
	if err != nil {
		answer := publicError(err)
		h.count(&answer, began)
		e.logRefusal(answer, err)
		writeError(w, e.requestID, answer)
		return
	}
	h.count(nil, began)
	e.logKey()
	writeResponse(w, e.response())
}

func (h *Handler) count(refused *access.Error, began time.Time) {
	if h.Answered != nil {
		h.Answered(refused, time.Since(began))
	}
}

// sourceOf is the address of the peer without its port. Forwarding headers are claims of the client and don't count.
func sourceOf(r *http.Request) string {
	return hostOf(r.RemoteAddr)
}
