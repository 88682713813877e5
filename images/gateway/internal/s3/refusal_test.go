package s3

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
)

func TestGaragesErrorsAreTranslated(t *testing.T) {
	cases := map[string]struct {
		reason string
		status int
		told   garageError
		want   access.Error
	}{
		"an unknown internal key": {
			"the node lags behind; AccessDenied would make clients give up",
			http.StatusForbidden,
			garageError{"AccessDenied", "Forbidden: No such key: system-s3-internal"},
			access.ErrSlowDown,
		},
		"the internal key may not": {
			"the key is fenced or not granted yet",
			http.StatusForbidden,
			garageError{"AccessDenied", "Forbidden: Operation is not allowed for this key."},
			access.ErrSlowDown,
		},
		"a HEAD is forbidden": {"an answer to HEAD has no text", http.StatusForbidden, garageError{}, access.ErrSlowDown},
		"a wrong region":      {"our own mistake is not the client's", http.StatusBadRequest, garageError{"AuthorizationHeaderMalformed", "x"}, access.ErrSlowDown},
		"a quota of bytes": {
			"the text names the limit",
			http.StatusForbidden,
			garageError{"AccessDenied", "Forbidden: Bucket size quota is reached, maximum total size of objects for this bucket: 5. The bucket is already 4 bytes, and this object would add 3 bytes."},
			access.ErrQuota.With("Bucket size quota is reached, maximum total size of objects for this bucket: 5. The bucket is already 4 bytes, and this object would add 3 bytes. " +
				"Delete objects, or have spec.size of the SystemBucket raised."),
		},
		"a quota of objects": {
			"the text names the limit",
			http.StatusForbidden,
			garageError{"AccessDenied", "Forbidden: Object quota is reached, maximum objects for this bucket: 2"},
			access.ErrQuota.With("Object quota is reached, maximum objects for this bucket: 2. " +
				"The bucket holds as many: delete objects, or have spec.maxObjects of the SystemBucket raised."),
		},
		"no quorum": {"SDKs repeat", http.StatusServiceUnavailable, garageError{"ServiceUnavailable", "Could not reach quorum of 2"}, access.ErrServiceUnavailable},
		"an accident": {
			"Garage's own text is for the log",
			http.StatusInternalServerError,
			garageError{"InternalError", "Internal error: LMDB"},
			access.ErrInternal,
		},
		"a wrong payload hash": {
			"", http.StatusBadRequest, garageError{"InvalidDigest", "Invalid digest: SHA256 checksum verification failed (from x-amz-content-sha256)"}, access.ErrContentSHA256,
		},
		"a wrong checksum": {
			"AWS says BadDigest", http.StatusBadRequest,
			garageError{"InvalidDigest", "Invalid digest: Failed to validate checksum for algorithm Crc32"},
			access.Error{Code: "BadDigest", Status: 400, Message: "The checksum you specified did not match what we received."},
		},
		"a wrong checksum of all parts": {
			"AWS says BadDigest", http.StatusBadRequest,
			garageError{"InvalidDigest", "Invalid digest: Failed to validate x-amz-checksum-*"},
			access.Error{Code: "BadDigest", Status: 400, Message: "The checksum you specified did not match what we received."},
		},
		"a malformed MD5": {
			"", http.StatusBadRequest,
			garageError{"InvalidDigest", "Invalid digest: The Content-MD5 or checksum value that you specified is not valid."},
			access.Error{Code: "InvalidDigest", Status: 400, Message: "The Content-MD5 or checksum value that you specified is not valid."},
		},
		"an absent object": {"what concerns the client goes through", http.StatusNotFound, garageError{"NoSuchKey", "Key not found"}, access.Error{Code: "NoSuchKey", Status: 404, Message: "Key not found"}},
		"an absent object, HEAD": {
			"", http.StatusNotFound, garageError{}, access.ErrNoSuchKey,
		},
		"a precondition, GET": {"Garage says no more than the status", http.StatusPreconditionFailed, garageError{}, access.ErrPrecondition},
		"a precondition, copy": {
			"the same words for all", http.StatusPreconditionFailed, garageError{"PreconditionFailed", "something else"}, access.ErrPrecondition,
		},
		"a range, HEAD":      {"", http.StatusRequestedRangeNotSatisfiable, garageError{}, access.ErrRange},
		"any other, no text": {"codes have no spaces", http.StatusMethodNotAllowed, garageError{}, access.Error{Code: "MethodNotAllowed", Status: 405, Message: "The storage refused the request."}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, asError(translate(c.status, c.told)), c.reason)
		})
	}
}

func TestAnAccidentOfOurOwnIsNotTold(t *testing.T) {
	require.Equal(t, access.ErrInternal, asError(errClientGone))
}
