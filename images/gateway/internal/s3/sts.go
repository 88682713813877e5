package s3

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"go.uber.org/zap"
)

// maxSTSBody is what STS accepts: a token of 20 000 characters and the rest of the form.
const maxSTSBody = 64 << 10

// stsBodyTimeout is what a client gets to send its form.
const stsBodyTimeout = 10 * time.Second

// NewSTS passes STS requests on to the STS service, whose certificate the transport verifies.
func NewSTS(service *url.URL, transport http.RoundTripper, log *zap.Logger) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(service) },
		Transport: transport,
		ErrorLog:  zap.NewStdLog(log),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			log.Warn("request to STS failed", zap.String("remote", r.RemoteAddr), zap.Error(err))
			writeSTSError(w, err)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := takeBody(w, r); err != nil {
			log.Info("request to STS refused", zap.String("remote", r.RemoteAddr), zap.Error(err))
			writeSTSError(w, err)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// takeBody reads the whole form, so that a slow client holds nothing of the STS service.
func takeBody(w http.ResponseWriter, r *http.Request) error {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(stsBodyTimeout)); err != nil {
		return fmt.Errorf("bound the reading of the form: %w", err)
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSTSBody))
	if err != nil {
		return fmt.Errorf("read the form: %w", err)
	}
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("end the bound on reading: %w", err)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	r.TransferEncoding = nil
	return nil
}

// stsError is STS's own form of an error.
type stsError struct {
	XMLName xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ ErrorResponse"`
	Type    string   `xml:"Error>Type"`
	Code    string   `xml:"Error>Code"`
	Message string   `xml:"Error>Message"`
}

// writeSTSError tells a request that is too large from an STS that is away, which every SDK asks again.
func writeSTSError(w http.ResponseWriter, cause error) {
	status, answer := http.StatusServiceUnavailable, stsError{
		Type: "Receiver", Code: "ServiceUnavailable", Message: "STS does not answer for the moment. Please try again.",
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(cause, &tooLarge) {
		status, answer = http.StatusRequestEntityTooLarge, stsError{
			Type: "Sender", Code: "ValidationError", Message: "The request is too large.",
		}
	}
	data, err := xml.Marshal(answer)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that left needs no answer
}
