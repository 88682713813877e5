package access

import (
	"slices"
	"strconv"
	"strings"
)

const (
	maxParts = 10000
	nullID   = "null" // the version of an object in a bucket that keeps none
)

// Parameters of a presigned URL and of the SDKs that choose nothing.
func choosesNothing(name string) bool {
	switch name {
	case "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Signature",
		"X-Amz-Security-Token", "X-Amz-Content-Sha256", "x-id":
		return true
	}
	return false
}

// sortQuery takes out what chooses nothing and finds the one parameter that chooses the operation, which stays in the
// query too. A parameter given twice is refused: two parsers could take two different values for it.
func sortQuery(raw map[string][]string) (query map[string]string, keyword string, err error) {
	query = make(map[string]string, len(raw))
	for name, values := range raw {
		if choosesNothing(name) {
			continue
		}
		if len(values) != 1 {
			return nil, "", ErrInvalidArgument.With("A query parameter must be given once.")
		}
		query[name] = values[0]
		if !isKeyword(name) {
			continue
		}
		if keyword != "" {
			return nil, "", ErrInvalidArgument.With("The query names more than one subresource.")
		}
		keyword = name
	}
	return query, keyword, nil
}

// checkQuery moves the parameters a route knows into the operation and refuses all others.
func checkQuery(op *Operation, route route, query map[string]string) error {
	op.Query = make(map[string]string, len(query))
	for name, value := range query {
		if !isKeyword(name) && !slices.Contains(route.params, name) {
			return ErrNotImplemented.With("A query parameter you provided implies functionality that is not implemented.")
		}
		keep, err := checkParam(name, value)
		if err != nil {
			return err
		}
		if keep {
			op.Query[name] = value
		}
	}
	if route.name == "UploadPart" && op.Query[partNumber] == "" {
		return ErrInvalidArgument.With("uploadId needs a partNumber.")
	}
	if isZero(query[maxKeys]) { // Garage would list one key
		op.Kind = Answer
	}
	return nil
}

const (
	uploadID   = "uploadId"
	partNumber = "partNumber"
	versionID  = "versionId"
	listType   = "list-type"
	maxKeys    = "max-keys"
)

// checkParam tells whether a parameter goes on. Garage takes an empty value for an absent parameter, which must not
// turn one operation into another.
func checkParam(name, value string) (keep bool, err error) {
	switch name {
	case versionID:
		if value != "" && value != nullID {
			return false, ErrNoSuchVersion
		}
		return false, nil
	case uploadID:
		if value == "" {
			return false, ErrNoSuchUpload
		}
		return true, nil
	case listType:
		if value != "2" {
			return false, ErrInvalidArgument.With("list-type must be 2.")
		}
		return true, nil
	}
	if isKeyword(name) {
		return true, nil
	}
	return value != "", checkValue(name, value)
}

// isZero tells numbers that have passed checkValue.
func isZero(number string) bool { return number != "" && strings.Trim(number, "0") == "" }

func checkValue(name, value string) error {
	switch {
	case value == "":
		return nil
	case name == "encoding-type":
		if value != "url" {
			return ErrInvalidArgument.With("Invalid Encoding Method specified in Request")
		}
	case name == partNumber:
		if n, err := strconv.ParseUint(value, 10, 16); err != nil || n-1 >= maxParts { // 0 wraps around
			return ErrInvalidArgument.With("Part number must be an integer between 1 and 10000, inclusive.")
		}
	case strings.HasPrefix(name, "max-") || name == "part-number-marker":
		if _, err := strconv.ParseUint(value, 10, 31); err != nil {
			return ErrInvalidArgument.With("Provided " + name + " not an integer or within integer range")
		}
	}
	return nil
}
