package s3

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/sigv4"
)

func asked(operation, query string) *exchange {
	values, _ := url.ParseQuery(query)
	return &exchange{operation: operation, verified: &sigv4.Verified{Query: values}, handler: &Handler{Config: Config{Region: "here"}}}
}

func TestWhatGarageSaysOfAnObjectIsMended(t *testing.T) {
	cases := map[string]struct {
		reason    string
		exchange  *exchange
		from, all http.Header
	}{
		"a type": {
			"what is known stays", asked("GetObject", ""),
			http.Header{"Content-Type": {"a/b"}},
			http.Header{"Content-Type": {"a/b"}},
		},
		"no type": {
			"the server would guess from the content, and HEAD would say something else", asked("GetObject", ""),
			http.Header{},
			http.Header{"Content-Type": {"binary/octet-stream"}},
		},
		"an override, HEAD": {
			"Garage obeys for GET only", asked("HeadObject", "response-content-type=c/d&response-cache-control=no-cache"),
			http.Header{"Content-Type": {"a/b"}},
			http.Header{"Content-Type": {"c/d"}, "Cache-Control": {"no-cache"}},
		},
		"an override, GET": {
			"Garage has obeyed", asked("GetObject", "response-content-type=c/d"),
			http.Header{"Content-Type": {"c/d"}},
			http.Header{"Content-Type": {"c/d"}},
		},
		"the only part": {
			"AWS counts the parts of objects that were uploaded in parts", asked("GetObject", "partNumber=1"),
			http.Header{"Content-Type": {"a/b"}, "Etag": {`"aa"`}, "X-Amz-Mp-Parts-Count": {"1"}},
			http.Header{"Content-Type": {"a/b"}, "Etag": {`"aa"`}},
		},
		"one of the parts": {
			"", asked("GetObject", "partNumber=1"),
			http.Header{"Content-Type": {"a/b"}, "Etag": {`"aa-1"`}, "X-Amz-Mp-Parts-Count": {"1"}},
			http.Header{"Content-Type": {"a/b"}, "Etag": {`"aa-1"`}, "X-Amz-Mp-Parts-Count": {"1"}},
		},
		"the part of an empty object": {
			"Garage counts below zero", asked("GetObject", "partNumber=1"),
			http.Header{"Content-Type": {"a/b"}, "Content-Range": {"bytes 0-18446744073709551615/0"}},
			http.Header{"Content-Type": {"a/b"}},
		},
		"a bucket": {"SDKs learn the region from it", asked("HeadBucket", ""), http.Header{}, http.Header{"X-Amz-Bucket-Region": {"here"}}},
		"a list":   {"not of an object", asked("ListObjects", ""), http.Header{}, http.Header{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.exchange.amend(c.from)
			require.Equal(t, c.all, c.from, c.reason)
		})
	}
}

func TestAPartThatIsNotThereHasItsOwnCode(t *testing.T) {
	invalid := access.Error{Code: "InvalidPart", Status: http.StatusBadRequest}
	require.Equal(t, access.ErrPartNumber, asked("GetObject", "partNumber=9").amendRefusal(invalid))
	require.Equal(t, access.ErrPartNumber, asked("HeadObject", "partNumber=9").amendRefusal(wordless(http.StatusBadRequest)), "HEAD has no text")
	require.Equal(t, access.ErrNoSuchKey, asked("GetObject", "partNumber=9").amendRefusal(access.ErrNoSuchKey))
	require.Equal(t, invalid, asked("GetObject", "").amendRefusal(invalid))
	require.Equal(t, invalid, asked("UploadPart", "partNumber=9").amendRefusal(invalid))
}
