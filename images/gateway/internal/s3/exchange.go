package s3

import (
	"crypto/rand"
	"encoding/xml"
	"errors"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/deckhouse/system-s3/images/gateway/internal/journal"
	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/sigv4"
)

const (
	requestIDHeader = "X-Amz-Request-Id"
	// retryAfter is what a client is told to wait, in seconds, when it is our side that is not ready.
	retryAfter = "1"
)

// exchange is one request with its answer.
type exchange struct {
	handler  *Handler
	request  *http.Request
	out      *response
	body     *upload
	watchdog *watchdog

	id        string
	started   time.Time
	verified  *sigv4.Verified // nil until the signature is proven
	caller    caller
	operation string
	deleted   []journal.Object // what DeleteObjects names
	failure   error            // what was refused and why, for the log
}

func newExchange(h *Handler, w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{handler: h, request: r, out: &response{ResponseWriter: w}, id: rand.Text(), started: time.Now()}
	x.watchdog = newWatchdog(h.StallTimeout, http.NewResponseController(w))
	x.body = &upload{source: r.Body, watchdog: x.watchdog, expects: r.Header.Get("Expect") != ""}
	r.Body = x.body
	w.Header().Set(requestIDHeader, x.id)
	return x
}

// finish ends what still runs, counts, and tells the log.
func (x *exchange) finish() {
	x.watchdog.stop()
	x.count()
	entry := x.handler.Log.Check(x.verdict())
	if entry == nil {
		return
	}
	fields := []zap.Field{
		zap.String("requestID", x.id), zap.String("method", x.request.Method), zap.String("operation", x.operation),
		zap.Int("status", x.out.status), zap.Duration("took", time.Since(x.started)),
		zap.Int64("received", x.body.read.Load()), zap.Int64("sent", x.out.written),
		zap.String("remote", x.request.RemoteAddr),
	}
	if x.verified != nil {
		fields = append(fields, zap.String("bucket", x.verified.Bucket))
		if !x.caller.internal {
			// The audit line of STS names the key and its owner by the same words.
			fields = append(fields, zap.String("key", access.KeyName(x.verified.AccessKeyID)), zap.Stringer("subject", x.caller.claims.Subject))
		}
	}
	if x.failure != nil && !isOrdinary(x.out.status) {
		fields = append(fields, zap.Error(x.failure))
	}
	entry.Write(fields...)
}

// verdict is how loud the log says what.
func (x *exchange) verdict() (zapcore.Level, string) {
	switch {
	case x.failure == nil || isOrdinary(x.out.status):
		return zap.DebugLevel, "request"
	case errors.Is(x.failure, errClientGone):
		return zap.DebugLevel, "request broken off by the client"
	case isOurs(x.out.status):
		return zap.WarnLevel, "request failed"
	}
	return zap.InfoLevel, "request refused"
}

// isOrdinary tells the errors that clients ask for all day, such as whether an object is there.
func isOrdinary(status int) bool {
	switch status {
	case http.StatusNotFound, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
		return true
	}
	return false
}

// isOurs tells the errors that are not the client's doing.
func isOurs(status int) bool {
	return status >= http.StatusInternalServerError && status != http.StatusNotImplemented
}

// errorBody is S3's form of an error.
type errorBody struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	Resource  string `xml:",omitempty"`
	RequestID string `xml:"RequestId"`
	HostID    string `xml:"HostId"`
}

// refuse answers with an error, after taking in what the client is still sending: many clients read an answer only
// when they have sent everything.
func (x *exchange) refuse(err error) {
	x.failure = err
	if errors.Is(err, errClientGone) {
		// Not even an empty answer, which would read as success.
		panic(http.ErrAbortHandler)
	}
	x.body.drain(x.out)
	s3Error := asError(err)
	if s3Error.Status == http.StatusServiceUnavailable {
		x.out.Header().Set("Retry-After", retryAfter)
	}
	x.writeError(s3Error)
}

func (x *exchange) writeError(e access.Error) {
	if x.request.Method == http.MethodHead {
		x.out.WriteHeader(e.Status)
		return
	}
	x.writeXML(e.Status, errorBody{
		Code: e.Code, Message: e.Message, Resource: x.request.URL.Path, RequestID: x.id, HostID: x.id,
	})
}

// writeXML answers with a whole XML document.
func (x *exchange) writeXML(status int, document any) {
	data, err := xml.Marshal(document)
	if err != nil {
		x.failure = err
		x.out.WriteHeader(http.StatusInternalServerError)
		return
	}
	data = append([]byte(xml.Header), data...)
	header := x.out.Header()
	header.Set("Content-Type", "application/xml")
	header.Set("Content-Length", strconv.Itoa(len(data)))
	x.out.WriteHeader(status)
	if x.request.Method != http.MethodHead {
		_, _ = x.out.Write(data) // a client that left needs no answer
	}
}

// response counts what is answered.
type response struct {
	http.ResponseWriter

	status  int
	written int64
}

// Unwrap lets http.ResponseController reach the connection.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader remembers the final status.
func (r *response) WriteHeader(status int) {
	if status >= http.StatusOK && r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write counts.
func (r *response) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.written += int64(n)
	return n, err
}
