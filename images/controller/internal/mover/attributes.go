package mover

import (
	"net/http"
	"strings"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	checksumPrefix = "X-Amz-Checksum-"
	checksumType   = "X-Amz-Checksum-Type"
)

// attributes are the headers that Garage keeps with an object, as they came: the SDK's own fields lose some, such as
// empty user metadata and dates that are none.
type attributes http.Header

func attributesOf(answer middleware.Metadata) attributes {
	kept := attributes{}
	raw, ok := awsmiddleware.GetRawResponse(answer).(*smithyhttp.Response)
	if !ok {
		return kept
	}
	for name, values := range raw.Header {
		if isKept(name) {
			kept[name] = values
		}
	}
	return kept
}

func isKept(name string) bool {
	switch name {
	case "Content-Type", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Expires",
		"X-Amz-Website-Redirect-Location":
		return true
	}
	return strings.HasPrefix(name, "X-Amz-Meta-") || strings.HasPrefix(name, checksumPrefix)
}

// asWhole sends them with an object that is put at once: Garage checks the checksum and keeps it.
func (a attributes) asWhole(o *s3.Options) {
	a.send(o, func(name string) bool { return name != checksumType })
}

// asParted sends them with the beginning of a multipart upload, where a checksum has no value yet.
func (a attributes) asParted(o *s3.Options) {
	a.send(o, func(name string) bool { return !strings.HasPrefix(name, checksumPrefix) })
}

func (a attributes) send(o *s3.Options, wanted func(name string) bool) {
	for name, values := range a {
		if wanted(name) {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue(name, strings.Join(values, ",")))
		}
	}
}

// checksum is the algorithm of the object's checksum and its type, empty when it has none.
func (a attributes) checksum() (algorithm, kind string) {
	for name := range a {
		if name != checksumType && strings.HasPrefix(name, checksumPrefix) {
			algorithm = strings.ToUpper(strings.TrimPrefix(name, checksumPrefix))
		}
	}
	if algorithm != "" {
		kind = http.Header(a).Get(checksumType)
	}
	return algorithm, kind
}
