package metrics

import "github.com/deckhouse/system-s3/lib/access"

// known is the code, or unknownCode in its place.
func known(code string) string {
	if codes[code] {
		return code
	}
	return unknownCode
}

// codes are all that may become a label: the errors of lib/access and those of Garage that pass through the gateway.
var codes = collectCodes(
	[]string{
		OK, ClientGone, "RequestTimeout", "BadDigest", "InvalidDigest", "InvalidPart", "InvalidPartOrder", "InvalidRequest",
		"NotModified", "BadRequest", "UnexpectedContent", "InvalidEncryptionAlgorithmError", "NoSuchCORSConfiguration",
		"NoSuchLifecycleConfiguration", "NoSuchWebsiteConfiguration", "NoSuchBucketPolicy", "NoSuchTagSet",
		"ServerSideEncryptionConfigurationNotFoundError", "ReplicationConfigurationNotFoundError",
		"ObjectLockConfigurationNotFoundError", "NoSuchPublicAccessBlockConfiguration",
	},
	access.ErrExpired, access.ErrUnknownKey, access.ErrInvalidToken, access.ErrDenied, access.ErrSignature, access.ErrTimeSkewed,
	access.ErrAuthHeader, access.ErrAuthQuery, access.ErrInvalidRequest, access.ErrInvalidArgument, access.ErrInvalidURI,
	access.ErrInvalidBucket, access.ErrKeyTooLong, access.ErrMethod, access.ErrNotImplemented, access.ErrACL,
	access.ErrStorageClass, access.ErrMalformedXML, access.ErrPartNumber, access.ErrPrecondition, access.ErrRange,
	access.ErrBucketOwned, access.ErrMissingLength, access.ErrIncompleteBody, access.ErrTooLarge, access.ErrTooSmall,
	access.ErrMalformedTrailer, access.ErrMalformedPOST, access.ErrPolicy, access.ErrContentSHA256, access.ErrMaxPOSTFieldsSize,
	access.ErrNoSuchBucket, access.ErrNoSuchKey, access.ErrNoSuchUpload, access.ErrNoSuchVersion, access.ErrQuota,
	access.ErrInsufficient, access.ErrSlowDown, access.ErrInternal, access.ErrBodyTooLarge,
)

func collectCodes(words []string, errs ...access.Error) map[string]bool {
	all := make(map[string]bool, len(words)+len(errs))
	for _, word := range words {
		all[word] = true
	}
	for _, err := range errs {
		all[err.Code] = true
	}
	return all
}
