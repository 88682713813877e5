package s3

import (
	"errors"
	"net/http"

	"github.com/deckhouse/system-s3/images/gateway/internal/metrics"
	"github.com/deckhouse/system-s3/images/gateway/internal/revocation"
	"github.com/deckhouse/system-s3/lib/access"
)

// count counts the request.
func (x *exchange) count() {
	x.handler.Meter.Count(metrics.Exchange{
		Bucket: x.provenBucket(), Operation: x.operation, Code: x.code(), Refusal: x.keyRefusal(),
		Received: x.body.read.Load(), Sent: x.out.written, Started: x.started,
	})
}

// provenBucket is the bucket of a consumer's request once the key was found to be for it: a stranger's words, or the
// bucket that somebody asks for with the key of another, must not become a label.
func (x *exchange) provenBucket() string {
	if x.verified == nil || x.operation == "" || x.caller.internal {
		return ""
	}
	return x.verified.Bucket
}

// code is how the request ended.
func (x *exchange) code() string {
	switch {
	case errors.Is(x.failure, errClientGone):
		return metrics.ClientGone
	case errors.Is(x.failure, errStalled):
		return errTimeout.Code
	case x.failure != nil:
		return asError(x.failure).Code
	case x.out.status >= http.StatusBadRequest: // STS has answered
		return http.StatusText(x.out.status)
	}
	return metrics.OK
}

// keyRefusal is why the key did not open what was asked for; empty when it did, or was not the reason.
func (x *exchange) keyRefusal() string {
	if x.failure == nil {
		return ""
	}
	var refused access.Error
	if !errors.As(x.failure, &refused) {
		return ""
	}
	switch refused.Code {
	case access.ErrExpired.Code, access.ErrUnknownKey.Code, access.ErrInvalidToken.Code, access.ErrSignature.Code,
		access.ErrTimeSkewed.Code, access.ErrAuthHeader.Code, access.ErrAuthQuery.Code:
		return refused.Code
	case access.ErrDenied.Code:
		return x.denial(refused)
	}
	return ""
}

// denial tells the ways of AccessDenied apart.
func (x *exchange) denial(refused access.Error) string {
	switch {
	case x.verified == nil:
		return "Unsigned"
	case refused == revocation.ErrRevoked:
		return "Revoked"
	case x.operation == "":
		return "OtherBucket"
	}
	return "NotPermitted"
}
