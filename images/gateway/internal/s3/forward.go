package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/deckhouse/system-s3/lib/access"
)

// errTimeout is AWS's answer to a client that stalls; SDKs repeat the request.
var errTimeout = access.Error{
	Code: "RequestTimeout", Status: http.StatusBadRequest,
	Message: "Your socket connection to the server was not read from or written to within the timeout period.",
}

// errClientGone is told to the log only.
var errClientGone = errors.New("the client has left")

// staysHere are the headers that belong to one connection, and Garage's own. The version is one that nobody could ask
// for: buckets keep none.
func staysHere(name string) bool {
	switch name {
	case "Server", "X-Amz-Version-Id", requestIDHeader:
		return true
	}
	return isOfConnection(name) || strings.HasPrefix(name, "Access-Control-")
}

// isOfConnection tells the headers that are not the request's or the answer's but the connection's.
func isOfConnection(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// forward passes the operation on to Garage and its answer back.
func (x *exchange) forward(op access.Operation) error {
	ctx, cancel := x.watchdog.guard(x.request.Context())
	defer cancel(nil)
	if op.Name == "DeleteObjects" {
		if err := x.verified.Body.Inspect(access.MaxDeleteDocument, x.checkDelete); err != nil {
			return x.broken(ctx, err)
		}
	}
	response, err := x.ask(ctx, op)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // what matters of the answer has been read
	if response.StatusCode >= http.StatusBadRequest {
		return x.refusal(response)
	}
	if x.verified.Post != nil {
		return x.answerPost(response)
	}
	return x.pass(ctx, response)
}

// send asks Garage.
func (x *exchange) send(ctx context.Context, op access.Operation) (*http.Response, error) {
	request, err := x.handler.Signer.Forward(ctx, x.verified, op, x.handler.Now())
	if err != nil {
		return nil, err //nolint:wrapcheck // it is the answer
	}
	response, err := x.handler.Transport.RoundTrip(request)
	if err != nil {
		return nil, x.broken(ctx, fmt.Errorf("ask Garage: %w", err))
	}
	return response, nil
}

// broken tells why there is no answer: the client's fault, its absence, or that of the one who was asked.
func (x *exchange) broken(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return errTimeout
	}
	if refused := (access.Error{}); errors.As(err, &refused) {
		return refused
	}
	if x.verified != nil && x.verified.Body != nil {
		if bodyErr := x.verified.Body.Err(); bodyErr != nil {
			return fmt.Errorf("read the request body: %w", bodyErr)
		}
	}
	if x.request.Context().Err() != nil {
		return errClientGone
	}
	return errors.Join(access.ErrServiceUnavailable, err)
}

// passHeader copies the header of a good answer.
func (x *exchange) passHeader(from http.Header) {
	header := x.out.Header()
	for name, values := range from {
		if !staysHere(name) {
			header[name] = values
		}
	}
	x.amend(header)
}

// pass copies a good answer.
func (x *exchange) pass(ctx context.Context, response *http.Response) error {
	x.passHeader(response.Header)
	x.out.WriteHeader(response.StatusCode)
	return x.passBody(ctx, response)
}

// passBody copies the body of an answer whose head is out.
func (x *exchange) passBody(ctx context.Context, response *http.Response) error {
	if x.request.Method == http.MethodHead {
		return nil
	}
	readErr, writeErr := x.pump(response.Body)
	if readErr == nil && writeErr == nil {
		return nil
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errStalled):
		x.failure = cause
	case writeErr != nil || x.request.Context().Err() != nil:
		x.failure = errClientGone
	default:
		x.failure = fmt.Errorf("read Garage's answer: %w", readErr)
	}
	// The status is out already: only a broken connection tells the client that this is not all.
	panic(http.ErrAbortHandler)
}
