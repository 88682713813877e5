package s3

import (
	"errors"
	"net/http"
	"strings"

	"github.com/deckhouse/system-s3/lib/access"
)

// defaultType is what AWS says of an object that was stored without a type. Without it the server would guess.
const defaultType = "binary/octet-stream"

// overrides are the parameters of a request that the answer's headers follow. Garage obeys them for GET only.
func overrides() map[string]string {
	return map[string]string{
		"response-cache-control": "Cache-Control", "response-content-disposition": "Content-Disposition",
		"response-content-encoding": "Content-Encoding", "response-content-language": "Content-Language",
		"response-content-type": "Content-Type", "response-expires": "Expires",
	}
}

// amend mends what Garage says of an object where AWS says something else.
func (x *exchange) amend(header http.Header) {
	switch x.operation {
	case "GetObject", "HeadObject":
	case "HeadBucket":
		header.Set("X-Amz-Bucket-Region", x.handler.Region)
		return
	default:
		return
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", defaultType)
	}
	// The only part of an object that was not uploaded in parts; of an empty one the range ends before it begins.
	if !strings.Contains(header.Get("ETag"), "-") {
		header.Del("X-Amz-Mp-Parts-Count")
	}
	if strings.HasSuffix(header.Get("Content-Range"), "/0") {
		header.Del("Content-Range")
	}
	if x.operation != "HeadObject" {
		return
	}
	for parameter, name := range overrides() {
		if value := x.verified.Query.Get(parameter); value != "" {
			header.Set(name, value)
		}
	}
}

// amendRefusal gives Garage's refusal of a part that the object has not the code that AWS has for it.
func (x *exchange) amendRefusal(err error) error {
	if x.verified.Query.Get("partNumber") == "" {
		return err
	}
	var told access.Error
	switch {
	case !errors.As(err, &told) || told.Status != http.StatusBadRequest:
		return err
	case x.operation == "GetObject" && told.Code == "InvalidPart", x.operation == "HeadObject":
		return access.ErrPartNumber
	}
	return err
}
