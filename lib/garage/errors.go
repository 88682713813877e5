package garage

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Error is an answer of the admin API other than 200.
type Error struct {
	Call    string // the call's name, such as GetBucketInfo
	Status  int    // of HTTP
	Code    string // Garage's word; empty when somebody else answered in Garage's place
	Message string
}

// Error tells the call, the status and Garage's own words.
func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("%s: HTTP %d: %s", e.Call, e.Status, e.Message)
	}
	return fmt.Sprintf("%s: %s: %s", e.Call, e.Code, e.Message)
}

const maxMessage = 512 // bytes kept of a foreign answer

func newError(call string, status int, body []byte) error {
	e := &Error{Call: call, Status: status}
	var told struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(body, &told); err == nil && told.Code != "" {
		e.Code, e.Message = told.Code, told.Message
		return e
	}
	e.Message = strings.ToValidUTF8(string(body[:min(len(body), maxMessage)]), "")
	return e
}

// IsAbsent tells whether err is Garage saying that the bucket or key does not exist. A 404 without Garage's code comes
// from something in between and proves nothing.
func IsAbsent(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound &&
		(e.Code == "NoSuchBucket" || e.Code == "NoSuchAccessKey")
}

// IsConflict tells whether err is Garage refusing a change because of what exists: a key id that was ever used, an
// alias of another bucket, a bucket that is not empty.
func IsConflict(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusConflict
}
