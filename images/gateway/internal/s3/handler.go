// Package s3 is the S3 port: it admits consumers by the keys that describe themselves, decides every request with
// lib/access, and passes on to Garage what passes, signed anew with the internal key. It keeps no state.
package s3

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/deckhouse/system-s3/images/gateway/internal/gate"
	"github.com/deckhouse/system-s3/images/gateway/internal/journal"
	"github.com/deckhouse/system-s3/images/gateway/internal/metrics"
	"github.com/deckhouse/system-s3/images/gateway/internal/revocation"
	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/sigv4"
)

// Config is what the handler works with.
type Config struct {
	Region      string             // what is told to those who ask; signatures for any are accepted
	Domains     []string           // hosts whose subdomains are buckets
	Ring        func() access.Ring // the key ring of the moment
	InternalID  string             // the internal key, by which the controller asks, too
	InternalKey string
	Signer      *sigv4.Signer
	Transport   http.RoundTripper // to Garage
	Gate        *gate.Gate
	Journal     *journal.Journal // nil when nobody may ask for one
	Elsewhere   Elsewhere
	Meter       *metrics.Meter // nil when nobody counts
	Revoked     *revocation.List
	Door        func(context.Context) error // nil when the replica serves clients; no function is an open door
	// HasBucket tells whether the store, not only this node, has a bucket.
	HasBucket    func(ctx context.Context, bucket string) (bool, error)
	STS          http.Handler // gets the form POSTs to the service itself
	StallTimeout time.Duration
	Now          func() time.Time
	Log          *zap.Logger
}

// Handler is the handler of the S3 port.
type Handler struct {
	Config

	verifier  *sigv4.Verifier
	keys      keys
	directory directory
}

// New is the handler of the S3 port.
func New(c Config) *Handler {
	h := &Handler{Config: c, directory: directory{ask: c.HasBucket, now: c.Now}}
	h.verifier = &sigv4.Verifier{Domains: c.Domains, Lookup: h.secretOf}
	return h
}

// ServeHTTP answers one request. No mux stands before it: a mux would clean paths, and keys may look like anything.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange(h, w, r)
	defer x.finish()
	if h.isSTS(r) {
		x.operation = "AssumeRoleWithWebIdentity"
		h.STS.ServeHTTP(x.out, r)
		return
	}
	if err := x.serve(); err != nil {
		x.refuse(err)
	}
}

// isSTS tells a request for STS from one for S3: a POST to the service itself, which S3 does not have. Some clients
// can only be pointed at one endpoint.
func (h *Handler) isSTS(r *http.Request) bool {
	if r.Method != http.MethodPost || r.URL.RawQuery != "" {
		return false
	}
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/x-www-form-urlencoded" {
		return false
	}
	bucket, _, err := access.Locate(r.Host, r.URL.Path, h.Domains)
	return err == nil && bucket == ""
}

// secretOf is the verifier's question for the secret of a key.
func (h *Handler) secretOf(accessKeyID string) (string, error) {
	if accessKeyID == h.InternalID {
		return h.InternalKey, nil
	}
	return h.keys.secretOf(h.Ring(), accessKeyID, h.Now())
}

// caller is who asks: a consumer with what its key claims, or the controller.
type caller struct {
	internal bool
	claims   access.Claims
	session  *access.Session // of the session token, nil when none was sent
}

// identify tells who has signed. The signature is proven; what is left is what the key and the token claim.
func (h *Handler) identify(id sigv4.Identity) (caller, error) {
	if id.AccessKeyID == h.InternalID {
		return caller{internal: true}, nil
	}
	now := h.Now()
	known, err := h.keys.prove(h.Ring(), id.AccessKeyID, id.SessionToken, now)
	if err == nil {
		err = h.Revoked.Check(known.claims, now)
	}
	return caller{claims: known.claims, session: known.session}, err
}

// decide tells the operation of a request and whether the caller may do it.
func (c caller) decide(r access.Request) (access.Operation, error) {
	if c.internal {
		return access.Classify(r)
	}
	return access.Decide(c.claims, r)
}

// serve answers the request, or has it answered where the store has moved to, or returns the error to answer with.
func (x *exchange) serve() error {
	if to := x.handler.Elsewhere.To; to != nil && to() != "" {
		return x.elsewhere()
	}
	err := x.serveHere()
	if errors.Is(err, gate.ErrElsewhere) {
		return x.elsewhere()
	}
	return err
}

// serveHere answers the request from this store or returns the error to answer with.
func (x *exchange) serveHere() error {
	// The signature of a form is in its body, which can be passed on only as long as nobody has read it.
	if sigv4.IsForm(x.request) {
		if err := x.handler.Gate.Wait(x.request.Context()); err != nil {
			return x.waited(err)
		}
	}
	verified, err := x.handler.verifier.Verify(x.request, x.handler.Now())
	if err != nil {
		return err
	}
	x.verified = verified
	if x.caller, err = x.handler.identify(verified.Identity); err != nil {
		return err
	}
	op, err := x.caller.decide(verified.Request())
	x.operation = op.Name
	if err != nil {
		return err
	}
	if op.Kind == access.Answer {
		return x.answer(op)
	}
	if x.handler.Door != nil {
		if err := x.handler.Door(x.request.Context()); err != nil {
			return x.waited(err)
		}
	}
	pass, err := x.handler.Gate.Enter(x.request.Context(), op, max(x.request.ContentLength, verified.Body.Length()))
	if err != nil {
		return x.waited(err)
	}
	defer pass.Leave()
	defer x.record(op) // before the pass ends: who holds writes and sees none on its way finds all in the journal
	x.body.pass = pass
	return x.forward(op)
}

// waited tells a client that has left while it waited from one that is refused.
func (x *exchange) waited(err error) error {
	if x.request.Context().Err() != nil {
		return errClientGone
	}
	return err
}

// asError is the S3 error to answer with. What is no S3 error is an accident of our own and not told to strangers.
func asError(err error) access.Error {
	var s3Error access.Error
	if errors.As(err, &s3Error) {
		return s3Error
	}
	return access.ErrInternal
}
