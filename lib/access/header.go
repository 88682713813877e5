package access

import (
	"slices"
	"strings"
)

const (
	headerCopySource = "x-amz-copy-source"
	headerCopyRange  = "x-amz-copy-source-range"
	headerACL        = "x-amz-acl"
	amzPrefix        = "x-amz-"
	metaPrefix       = "x-amz-meta-"

	// account is the one account there is, as it stands in every RoleArn.
	account = "000000000000"
)

// checkHeaders refuses every header that would change what the request means without Garage obeying it, and makes a
// copy of an upload whose header names a source.
func checkHeaders(op *Operation, header map[string][]string) error {
	for name, values := range header {
		if err := checkHeader(strings.ToLower(name), values); err != nil {
			return err
		}
	}
	if strings.HasPrefix(op.Name, "Put") && strings.HasSuffix(op.Name, "Acl") && len(headerValues(header, headerACL)) == 0 {
		return ErrACL.With("The ACL must be private, given by the header x-amz-acl.")
	}
	if err := checkCopy(op, header); err != nil {
		return err
	}
	return checkConditions(op, header)
}

// checkCopy turns PutObject and UploadPart with a copy source into the copies they are: they read the source, too.
func checkCopy(op *Operation, header map[string][]string) error {
	values := headerValues(header, headerCopySource)
	ranged := len(headerValues(header, headerCopyRange)) > 0
	if len(values) == 0 {
		if ranged {
			return ErrInvalidArgument.With("x-amz-copy-source-range needs a copy source.")
		}
		return nil
	}
	switch op.Name {
	case "PutObject":
		op.Name = "CopyObject"
		if ranged {
			return ErrNotImplemented.With("CopyObject copies whole objects: x-amz-copy-source-range is for parts.")
		}
	case "UploadPart":
		op.Name = "UploadPartCopy"
	default:
		return ErrInvalidArgument.With(op.Name + " takes no copy source.")
	}
	source, err := parseCopySource(values[0])
	if err != nil {
		return err
	}
	op.Need = ReadWrite
	op.CopySource = &source
	return nil
}

// checkConditions refuses conditional writes: Garage ignores the condition and writes.
func checkConditions(op *Operation, header map[string][]string) error {
	if !op.Need.Covers(Write) {
		return nil
	}
	for _, name := range []string{"if-match", "if-none-match"} {
		if len(headerValues(header, name)) > 0 {
			return ErrNotImplemented.With("Conditional writes are not implemented.")
		}
	}
	return nil
}

// checkHeader judges a header by itself: those of S3 that are not the object's own metadata.
func checkHeader(name string, values []string) error {
	if !strings.HasPrefix(name, amzPrefix) || strings.HasPrefix(name, metaPrefix) {
		return nil
	}
	if len(values) != 1 {
		return ErrInvalidArgument.With("A header must be given once: " + name)
	}
	value := values[0]
	if allowed, known := valued(name); known {
		if slices.Contains(allowed, value) {
			return nil
		}
		return unsupported(name)
	}
	if plain(name) {
		return nil
	}
	return unsupported(name)
}

// valued is the headers of which only some values mean what Garage does anyway.
func valued(name string) (allowed []string, known bool) {
	switch name {
	case headerACL:
		return []string{"private", "bucket-owner-full-control"}, true
	case "x-amz-storage-class":
		return []string{"STANDARD"}, true
	case "x-amz-tagging":
		return []string{""}, true
	case "x-amz-tagging-directive":
		return []string{"COPY"}, true
	case "x-amz-metadata-directive":
		return []string{"COPY", "REPLACE"}, true
	case "x-amz-expected-bucket-owner", "x-amz-source-expected-bucket-owner":
		return []string{account}, true
	}
	return nil, false
}

// plain is the headers that Garage obeys or that change nothing.
func plain(name string) bool {
	switch name {
	case "x-amz-date", "x-amz-content-sha256", "x-amz-security-token", "x-amz-decoded-content-length", "x-amz-trailer",
		"x-amz-user-agent", "x-amz-request-payer", "x-amz-optional-object-attributes", "x-amz-mp-object-size",
		"x-amz-bypass-governance-retention", // there is none to bypass
		"x-amz-checksum-crc32", "x-amz-checksum-crc32c", "x-amz-checksum-crc64nvme", "x-amz-checksum-sha1",
		"x-amz-checksum-sha256", "x-amz-checksum-algorithm", "x-amz-checksum-mode", "x-amz-checksum-type",
		"x-amz-sdk-checksum-algorithm", "x-amz-website-redirect-location",
		headerCopySource, headerCopyRange, "x-amz-copy-source-if-match", "x-amz-copy-source-if-none-match",
		"x-amz-copy-source-if-modified-since", "x-amz-copy-source-if-unmodified-since":
		return true
	}
	return false
}

// unsupported is the error of a header that is not obeyed.
func unsupported(name string) Error {
	switch {
	case name == headerACL || strings.HasPrefix(name, "x-amz-grant-"):
		return ErrACL
	case name == "x-amz-storage-class":
		return ErrStorageClass
	case strings.HasSuffix(name, "expected-bucket-owner"):
		return ErrDenied.With("The bucket's owner is the account " + account + ".")
	case name == "x-amz-metadata-directive":
		return ErrInvalidArgument.With("Unknown metadata directive.")
	case strings.HasPrefix(name, "x-amz-object-lock-"):
		return ErrNoLock
	case strings.Contains(name, "server-side-encryption"):
		return ErrNotImplemented.With("Server-side encryption is not implemented: " + name)
	}
	return ErrNotImplemented.With("A header you provided implies functionality that is not implemented: " + name)
}
