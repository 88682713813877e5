package sts

import (
	"errors"
	"net/http"

	"github.com/deckhouse/system-s3/lib/access"
)

// The errors of the protocol: what an SDK does next depends on the code. AccessDenied and IDPRejectedClaim are final,
// the token's own errors and what the apiserver's absence causes are tried again.
var (
	errMissingAction   = access.Error{Code: "MissingAction", Status: http.StatusBadRequest, Message: "The request must contain the parameter Action."}
	errInvalidAction   = access.Error{Code: "InvalidAction", Status: http.StatusBadRequest, Message: "Only AssumeRoleWithWebIdentity of version 2011-06-15 is served here."}
	errMissing         = access.Error{Code: "MissingParameter", Status: http.StatusBadRequest, Message: "A required parameter is missing."}
	errCombination     = access.Error{Code: "InvalidParameterCombination", Status: http.StatusBadRequest, Message: "Parameters that cannot be used together were used together."}
	errBadBody         = access.Error{Code: "InvalidQueryParameter", Status: http.StatusBadRequest, Message: "The body is not well-formed application/x-www-form-urlencoded."}
	errBadQuery        = access.Error{Code: "MalformedQueryString", Status: http.StatusNotFound, Message: "The query string contains a syntax error."}
	errBodyTooLarge    = access.ErrValidation.With("The request body is larger than 64 KiB.")
	errTooSlow         = access.Error{Code: "RequestTimeout", Status: http.StatusBadRequest, Message: "The request body did not arrive in time. Please try again."}
	errPolicy          = access.Error{Code: "MalformedPolicyDocument", Status: http.StatusBadRequest, Message: "Session policies are not supported. Narrow the role instead: RoleArn with the suffix /read or /write."}
	errPolicyTooLarge  = access.Error{Code: "PackedPolicyTooLarge", Status: http.StatusBadRequest, Message: "Session policies are not supported. Narrow the role instead: RoleArn with the suffix /read or /write."}
	errInvalidToken    = access.Error{Code: "InvalidIdentityToken", Status: http.StatusBadRequest, Message: "The web identity token is not a ServiceAccount token."}
	errExpiredToken    = access.Error{Code: "ExpiredTokenException", Status: http.StatusBadRequest, Message: "The web identity token has expired. Read it from the projected volume again: kubelet renews it there."}
	errUnreachable     = access.Error{Code: "IDPCommunicationError", Status: http.StatusBadRequest, Message: "The Kubernetes API could not be asked about the token. Please try again."}
	errThrottled       = access.Error{Code: "Throttling", Status: http.StatusBadRequest, Message: "Rate exceeded"}
	errUnavailable     = access.Error{Code: "ServiceUnavailable", Status: http.StatusServiceUnavailable, Message: "The Kubernetes API could not be asked about the access rights. Please try again."}
	errInternalFailure = access.Error{Code: "InternalFailure", Status: http.StatusInternalServerError, Message: "The request failed because of an internal error."}
)

// publicError is what the client is told. Anything without a code is internal and is never shown.
func publicError(err error) access.Error {
	var coded access.Error
	if errors.As(err, &coded) {
		return coded
	}
	return errInternalFailure
}

// refusal is an error with a code for the client and a cause for the log only.
type refusal struct {
	answer access.Error
	cause  error
}

func refuse(answer access.Error, cause error) error { return refusal{answer: answer, cause: cause} }

func (r refusal) Error() string   { return r.answer.Error() + ": " + r.cause.Error() }
func (r refusal) Unwrap() []error { return []error{r.answer, r.cause} }

// tokenError tells a token that nobody vouches for from an apiserver that does not answer.
func tokenError(err error) error {
	if errors.Is(err, ErrTokenRefused) {
		return refuse(access.ErrRejected.With("The Kubernetes API does not accept the token: it was not issued by this cluster, has expired, or its ServiceAccount or Pod is gone."), err)
	}
	return refuse(errUnreachable, err)
}

func (e *exchange) bucketError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNoBucket):
		return refuse(e.denied(), err)
	default:
		return refuse(errUnavailable, err)
	}
}
