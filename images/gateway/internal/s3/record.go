package s3

import (
	"encoding/xml"

	"github.com/deckhouse/system-s3/images/gateway/internal/journal"
	"github.com/deckhouse/system-s3/lib/access"
)

// record notes what the request may have changed, however it ended and whoever has signed it.
func (x *exchange) record(op access.Operation) {
	to := x.handler.Journal
	if to == nil {
		return
	}
	switch op.Name {
	case "PutObject", "CopyObject", "DeleteObject", "CompleteMultipartUpload":
		to.Record(journal.Object{Bucket: x.verified.Bucket, Key: x.verified.Key})
	case "DeleteObjects":
		to.Record(x.deleted...)
	}
}

// checkDelete judges the document of DeleteObjects and remembers what it names.
func (x *exchange) checkDelete(data []byte) error {
	if err := access.CheckDelete(string(data)); err != nil {
		return err //nolint:wrapcheck // it is the answer
	}
	var document struct {
		Objects []struct {
			Key string `xml:"Key"`
		} `xml:"Object"`
	}
	if err := xml.Unmarshal(data, &document); err != nil {
		return access.ErrMalformedXML
	}
	for _, object := range document.Objects {
		x.deleted = append(x.deleted, journal.Object{Bucket: x.verified.Bucket, Key: object.Key})
	}
	return nil
}
