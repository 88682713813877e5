package s3

import (
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/deckhouse/system-s3/lib/access"
)

// Elsewhere is where the store has moved to.
type Elsewhere struct {
	// To is the URL of a gateway there; empty while the store is here, and nil where it never moves.
	To func() string
	// Transport verifies that gateway's certificate. It bounds the waiting for a connection and for an answer.
	Transport http.RoundTripper
}

// elsewhere passes the request on as it came to where the store has moved to, where the signature is verified: nothing
// that a signature may cover is touched. Clients are told to leave this connection, and look for the next one where the
// Service points by then.
func (x *exchange) elsewhere() error {
	x.operation = "Forwarded"
	x.out.Header().Set("Connection", "close")
	if x.body.begun.Load() {
		return fmt.Errorf("%w: the store has moved while the request was read", access.ErrServiceUnavailable)
	}
	ctx, cancel := x.watchdog.guard(x.request.Context())
	defer cancel(nil)
	request, err := x.redirected()
	if err != nil {
		return err
	}
	response, err := x.handler.Elsewhere.Transport.RoundTrip(request.WithContext(ctx))
	if err != nil {
		return x.broken(ctx, fmt.Errorf("ask where the store has moved to: %w", err))
	}
	if response.StatusCode >= http.StatusBadRequest {
		return x.passRefusal(response)
	}
	defer response.Body.Close() //nolint:errcheck // what matters of the answer has been read
	x.passForeign(response)
	return x.passBody(ctx, response)
}

// redirected is the request for the other gateway.
func (x *exchange) redirected() (*http.Request, error) {
	to, err := url.Parse(x.handler.Elsewhere.To())
	if err != nil {
		return nil, fmt.Errorf("forward the request: %w", err)
	}
	from := x.request
	target := *from.URL
	target.Scheme, target.Host = to.Scheme, to.Host
	header := from.Header.Clone()
	for name := range header {
		if isOfConnection(name) {
			delete(header, name)
		}
	}
	if _, told := header["User-Agent"]; !told {
		header["User-Agent"] = nil // or the transport tells its own
	}
	request := &http.Request{
		Method: from.Method, URL: &target, Host: from.Host, Header: header, ContentLength: from.ContentLength, Body: from.Body,
		TransferEncoding: from.TransferEncoding, Trailer: from.Trailer, Proto: from.Proto, ProtoMajor: 1, ProtoMinor: 1,
	}
	if from.ContentLength == 0 {
		request.Body = http.NoBody
	}
	return request, nil
}

// passForeign passes the head of the other gateway's answer on. Its request id is the client's, and the log's.
func (x *exchange) passForeign(response *http.Response) {
	header := x.out.Header()
	for name, values := range response.Header {
		if !isOfConnection(name) {
			header[name] = values
		}
	}
	if id := response.Header.Get(requestIDHeader); id != "" {
		x.id = id
	}
	x.out.WriteHeader(response.StatusCode)
}

// passRefusal passes a refusal on, after taking in what the client is still sending.
func (x *exchange) passRefusal(response *http.Response) error {
	defer response.Body.Close() //nolint:errcheck // what matters of the answer has been read
	data, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	if err != nil {
		return fmt.Errorf("%w: read the answer from where the store has moved to: %w", access.ErrServiceUnavailable, err)
	}
	x.body.drain(x.out)
	x.passForeign(response)
	_, _ = x.out.Write(data) // a client that left needs no answer
	return nil
}
