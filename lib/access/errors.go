package access

// Error is an error as S3 and STS clients understand it: the code decides what an SDK does next.
type Error struct {
	Code    string
	Status  int // HTTP status
	Message string
}

// Error is the code and the message.
func (e Error) Error() string { return e.Code + ": " + e.Message }

// Is makes errors.Is compare codes only, so that a message may say more than the catalogue's.
func (e Error) Is(target error) bool {
	t, ok := target.(Error)
	return ok && t.Code == e.Code
}

// With is the same error with a message of its own.
func (e Error) With(message string) Error {
	e.Message = message
	return e
}

// HTTP statuses, written out because a pure package does not import net/http.
const (
	statusBadRequest     = 400
	statusForbidden      = 403
	statusNotFound       = 404
	statusNotAllowed     = 405
	statusConflict       = 409
	statusLengthRequired = 411
	statusPrecondition   = 412
	statusTooLarge       = 413
	statusRange          = 416
	statusInternal       = 500
	statusNotImplemented = 501
	statusUnavailable    = 503
	statusNoStorage      = 507
)

// Keys and signatures.
var (
	ErrExpired      = Error{Code: "ExpiredToken", Status: statusBadRequest, Message: "The provided token has expired."}
	ErrUnknownKey   = Error{Code: "InvalidAccessKeyId", Status: statusForbidden, Message: "The AWS Access Key Id you provided does not exist in our records."}
	ErrInvalidToken = Error{Code: "InvalidToken", Status: statusBadRequest, Message: "The provided token is malformed or does not belong to the access key."}
	ErrDenied       = Error{Code: "AccessDenied", Status: statusForbidden, Message: "Access Denied."}
	ErrSignature    = Error{Code: "SignatureDoesNotMatch", Status: statusForbidden, Message: "The request signature we calculated does not match the signature you provided. Check your key and signing method."}
	ErrTimeSkewed   = Error{Code: "RequestTimeTooSkewed", Status: statusForbidden, Message: "The difference between the request time and the server's time is too large."}
	ErrAuthHeader   = Error{Code: "AuthorizationHeaderMalformed", Status: statusBadRequest, Message: "The authorization header is malformed."}
	ErrAuthQuery    = Error{Code: "AuthorizationQueryParametersError", Status: statusBadRequest, Message: "The query string's authorization parameters are malformed."}
)

// Requests.
var (
	ErrInvalidRequest  = Error{Code: "InvalidRequest", Status: statusBadRequest, Message: "Invalid request."}
	ErrInvalidArgument = Error{Code: "InvalidArgument", Status: statusBadRequest, Message: "Invalid argument."}
	ErrInvalidURI      = Error{Code: "InvalidURI", Status: statusBadRequest, Message: "Couldn't parse the specified URI."}
	ErrInvalidBucket   = Error{Code: "InvalidBucketName", Status: statusBadRequest, Message: "The specified bucket is not valid."}
	ErrKeyTooLong      = Error{Code: "KeyTooLongError", Status: statusBadRequest, Message: "Your key is too long: this store takes 471 bytes."}
	ErrMethod          = Error{Code: "MethodNotAllowed", Status: statusNotAllowed, Message: "The specified method is not allowed against this resource."}
	ErrNotImplemented  = Error{Code: "NotImplemented", Status: statusNotImplemented, Message: "This functionality is not implemented."}
	ErrACL             = Error{Code: "AccessControlListNotSupported", Status: statusBadRequest, Message: "The bucket does not allow ACLs other than private."}
	ErrStorageClass    = Error{Code: "InvalidStorageClass", Status: statusBadRequest, Message: "The storage class you specified is not valid: there is only STANDARD."}
	ErrMalformedXML    = Error{Code: "MalformedXML", Status: statusBadRequest, Message: "The XML you provided was not well-formed or did not validate against our published schema."}
	ErrPartNumber      = Error{Code: "InvalidPartNumber", Status: statusRange, Message: "The requested partnumber is not satisfiable."}
	ErrPrecondition    = Error{Code: "PreconditionFailed", Status: statusPrecondition, Message: "At least one of the pre-conditions you specified did not hold."}
	ErrRange           = Error{Code: "InvalidRange", Status: statusRange, Message: "The requested range is not satisfiable."}
	ErrNoLock          = Error{Code: "InvalidRequest", Status: statusBadRequest, Message: "Bucket is missing Object Lock Configuration"}
	ErrBucketOwned     = Error{Code: "BucketAlreadyOwnedByYou", Status: statusConflict, Message: "The bucket you tried to create already exists, and you own it."}
)

// Bodies.
var (
	ErrMissingLength     = Error{Code: "MissingContentLength", Status: statusLengthRequired, Message: "You must provide the Content-Length HTTP header."}
	ErrIncompleteBody    = Error{Code: "IncompleteBody", Status: statusBadRequest, Message: "You did not provide the number of bytes announced."}
	ErrTooLarge          = Error{Code: "EntityTooLarge", Status: statusBadRequest, Message: "Your proposed upload exceeds the maximum allowed size."}
	ErrTooSmall          = Error{Code: "EntityTooSmall", Status: statusBadRequest, Message: "Your proposed upload is smaller than the minimum allowed size."}
	ErrMalformedTrailer  = Error{Code: "MalformedTrailerError", Status: statusBadRequest, Message: "The request contained trailing data that was not well-formed or did not conform to our published schema."}
	ErrMalformedPOST     = Error{Code: "MalformedPOSTRequest", Status: statusBadRequest, Message: "The body of your POST request is not well-formed multipart/form-data."}
	ErrPolicy            = Error{Code: "InvalidPolicyDocument", Status: statusBadRequest, Message: "The content of the form does not meet the conditions specified in the policy document."}
	ErrContentSHA256     = Error{Code: "XAmzContentSHA256Mismatch", Status: statusBadRequest, Message: "The provided 'x-amz-content-sha256' header does not match what was computed."}
	ErrMaxPOSTFieldsSize = Error{Code: "MaxPostPreDataLengthExceededError", Status: statusBadRequest, Message: "Your POST request fields preceding the upload file were too large."}
)

// What a bucket does not have, and what the store says for itself.
var (
	ErrNoSuchBucket       = Error{Code: "NoSuchBucket", Status: statusNotFound, Message: "The specified bucket does not exist."}
	ErrNoSuchKey          = Error{Code: "NoSuchKey", Status: statusNotFound, Message: "The specified key does not exist."}
	ErrNoSuchUpload       = Error{Code: "NoSuchUpload", Status: statusNotFound, Message: "The specified multipart upload does not exist."}
	ErrNoSuchVersion      = Error{Code: "NoSuchVersion", Status: statusNotFound, Message: "The specified version does not exist: buckets keep no versions."}
	ErrQuota              = Error{Code: "QuotaExceeded", Status: statusForbidden, Message: "The bucket's quota is reached."}
	ErrInsufficient       = Error{Code: "InsufficientStorage", Status: statusNoStorage, Message: "The storage has no room left for writes; deletes are accepted."}
	ErrSlowDown           = Error{Code: "SlowDown", Status: statusUnavailable, Message: "Please reduce your request rate."}
	ErrServiceUnavailable = Error{Code: "SlowDown", Status: statusUnavailable, Message: "The storage is unavailable for the moment. Please try again."}
	ErrInternal           = Error{Code: "InternalError", Status: statusInternal, Message: "We encountered an internal error. Please try again."}
	ErrBodyTooLarge       = Error{Code: "MaxMessageLengthExceeded", Status: statusTooLarge, Message: "Your request was too large."}
)
