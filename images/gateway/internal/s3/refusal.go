package s3

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/deckhouse/system-s3/lib/access"
)

// maxRefusal bounds what is read of Garage's error; real ones have some hundred bytes.
const maxRefusal = 64 << 10

// quotaWaysOut are the ways out of a quota, by the beginning of the text by which Garage's AccessDenied tells that it is
// reached; the text itself names the limit and how full the bucket is.
func quotaWaysOut() map[string]string {
	return map[string]string{
		"Bucket size quota is reached": "Delete objects, or have spec.size of the SystemBucket raised.",
		"Object quota is reached":      "The bucket holds as many: delete objects, or have spec.maxObjects of the SystemBucket raised.",
	}
}

// garageError is Garage's error; it names its own region and path, which are none of the client's business.
type garageError struct {
	Code    string `xml:"Code"`
	Message string `xml:"Message"`
}

// readRefusal reads Garage's error and leaves the body as it was; the zero garageError is one without words.
func readRefusal(response *http.Response) (garageError, error) {
	data, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	if err != nil {
		return garageError{}, fmt.Errorf("read Garage's error: %w", err)
	}
	response.Body = readBody{bytes.NewReader(data), response.Body}
	var told garageError
	if err := xml.Unmarshal(data, &told); err != nil {
		return garageError{}, fmt.Errorf("understand Garage's error: %w", err)
	}
	return told, nil
}

// readBody is a body that was read already.
type readBody struct {
	io.Reader
	io.Closer
}

// refusal turns Garage's error into the one the client gets.
func (x *exchange) refusal(response *http.Response) error {
	told, err := readRefusal(response)
	if err != nil {
		told = garageError{}
	}
	if contentRange := response.Header.Get("Content-Range"); contentRange != "" {
		x.out.Header().Set("Content-Range", contentRange)
	}
	return x.amendRefusal(translate(response.StatusCode, told))
}

// These begin the texts by which Garage tells that what it received is not what was announced.
const (
	hashMismatch     = "SHA256 checksum verification failed (from x-amz-content-sha256)"
	checksumMismatch = "Failed to validate checksum"
	totalMismatch    = "Failed to validate x-amz-checksum" // of all parts together
)

// translateDigest gives a mismatch the code that AWS has for it.
func translateDigest(told garageError) access.Error {
	message := strings.TrimPrefix(told.Message, "Invalid digest: ")
	switch {
	case strings.HasPrefix(message, hashMismatch):
		return access.ErrContentSHA256
	case strings.HasPrefix(message, checksumMismatch), strings.HasPrefix(message, totalMismatch):
		return access.Error{Code: "BadDigest", Status: http.StatusBadRequest, Message: "The checksum you specified did not match what we received."}
	}
	return access.Error{Code: told.Code, Status: http.StatusBadRequest, Message: message}
}

// translate judges Garage's error. A refusal of our own key is never the client's: by then its request was found good.
func translate(status int, told garageError) error {
	cause := fmt.Errorf("Garage answered %d %s: %s", status, told.Code, told.Message) //nolint:staticcheck // a name
	switch {
	case status == http.StatusForbidden:
		message := strings.TrimPrefix(told.Message, "Forbidden: ")
		for prefix, wayOut := range quotaWaysOut() {
			if strings.HasPrefix(message, prefix) {
				return access.ErrQuota.With(strings.TrimSuffix(message, ".") + ". " + wayOut)
			}
		}
		return errors.Join(access.ErrSlowDown, cause)
	case told.Code == "AuthorizationHeaderMalformed":
		return errors.Join(access.ErrSlowDown, cause)
	case told.Code == "InvalidDigest":
		return translateDigest(told)
	case told.Code == "InternalError":
		return errors.Join(access.ErrInternal, cause)
	case status == http.StatusServiceUnavailable:
		return errors.Join(access.ErrServiceUnavailable, cause)
	case status == http.StatusPreconditionFailed:
		return access.ErrPrecondition
	case told.Code == "":
		return wordless(status)
	}
	return access.Error{Code: told.Code, Status: status, Message: told.Message}
}

// wordless is the error of an answer that has a status and no more.
func wordless(status int) access.Error {
	switch status {
	case http.StatusNotFound:
		return access.ErrNoSuchKey
	case http.StatusRequestedRangeNotSatisfiable:
		return access.ErrRange
	}
	return access.Error{Code: strings.ReplaceAll(http.StatusText(status), " ", ""), Status: status, Message: "The storage refused the request."}
}
