package sigv4

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"time"

	"github.com/deckhouse/system-s3/lib/access"
)

// maxConditions bounds the work of checking a policy; fields are bounded too.
const maxConditions = 512

// policy is what the signer of a POST form allowed.
type policy struct {
	expiration  time.Time
	conditions  []condition
	least, most int64 // content-length-range, in bytes
}

// condition is about one field of the form.
type condition struct {
	field  string // in lower case
	value  string
	prefix bool // the field starts with the value; else it equals it
}

func (c condition) holds(value string) bool {
	if !c.prefix {
		return value == c.value
	}
	if c.field != "content-type" {
		return strings.HasPrefix(value, c.value)
	}
	// S3 takes a content type for a list, each of which must begin so.
	for part := range strings.SplitSeq(value, ",") {
		if !strings.HasPrefix(strings.TrimSpace(part), c.value) {
			return false
		}
	}
	return true
}

// parsePolicy reads a policy document, refusing whatever it does not understand. The error is ErrPolicy.
func parsePolicy(encoded string) (policy, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return policy{}, access.ErrPolicy.With("The policy must be base64.")
	}
	var document struct {
		Expiration string            `json:"expiration"`
		Conditions []json.RawMessage `json:"conditions"`
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil || !errors.Is(decoder.Decode(&struct{}{}), io.EOF) {
		return policy{}, access.ErrPolicy.With("The policy must be a JSON object of expiration and conditions.")
	}
	expiration, err := time.Parse(time.RFC3339, document.Expiration)
	if err != nil {
		return policy{}, access.ErrPolicy.With("The policy needs an expiration in the ISO8601 format.")
	}
	if document.Conditions == nil || len(document.Conditions) > maxConditions {
		return policy{}, access.ErrPolicy.With("The policy needs conditions, at most 512.")
	}
	parsed := policy{expiration: expiration, most: math.MaxInt64}
	for _, raw := range document.Conditions {
		if !parsed.add(raw) {
			return policy{}, access.ErrPolicy.With("A condition of the policy is not understood.")
		}
	}
	return parsed, nil
}

// add reads one condition: {"field": "value"} or [operator, ...].
func (p *policy) add(raw json.RawMessage) bool {
	var object map[string]string
	if json.Unmarshal(raw, &object) == nil {
		for field, value := range object {
			p.conditions = append(p.conditions, condition{field: strings.ToLower(field), value: value})
		}
		return len(object) == 1
	}
	var list []json.RawMessage
	var operator string
	if json.Unmarshal(raw, &list) != nil || len(list) != 3 || json.Unmarshal(list[0], &operator) != nil {
		return false
	}
	switch strings.ToLower(operator) {
	case "content-length-range":
		return p.addRange(list[1], list[2])
	case "eq", "starts-with":
		return p.addMatch(list[1], list[2], strings.EqualFold(operator, "starts-with"))
	}
	return false
}

func (p *policy) addMatch(rawField, rawValue json.RawMessage, prefix bool) bool {
	var field, value string
	if json.Unmarshal(rawField, &field) != nil || json.Unmarshal(rawValue, &value) != nil {
		return false
	}
	name, ok := strings.CutPrefix(field, "$")
	p.conditions = append(p.conditions, condition{field: strings.ToLower(name), value: value, prefix: prefix})
	return ok && name != ""
}

// addRange narrows the range, so that of several ranges all hold.
func (p *policy) addRange(rawLeast, rawMost json.RawMessage) bool {
	least, okLeast := size(rawLeast)
	most, okMost := size(rawMost)
	p.least, p.most = max(p.least, least), min(p.most, most)
	return okLeast && okMost && least <= most
}

// size reads a number of bytes, which some clients write as a string.
func size(raw json.RawMessage) (int64, bool) {
	var n int64
	if json.Unmarshal(bytes.Trim(raw, `"`), &n) != nil || n < 0 {
		return 0, false
	}
	return n, true
}

// check tells whether the form is what the policy allows: every condition holds, every field is named by one. The error
// is ErrDenied.
func (p policy) check(fields map[string]string, bucket, key string, now time.Time) error {
	if !now.Before(p.expiration) {
		return access.ErrDenied.With("Invalid according to Policy: Policy expired.")
	}
	named := map[string]bool{}
	for _, c := range p.conditions {
		value, present := fields[c.field]
		switch c.field {
		case "bucket":
			value, present = bucket, true
		case "key":
			value, present = key, true
		}
		if !present || !c.holds(value) {
			return access.ErrDenied.With("Invalid according to Policy: Policy Condition failed: " + printable(c.field))
		}
		named[c.field] = true
	}
	for field := range fields {
		if !named[field] && !isFree(field) {
			return access.ErrDenied.With("Invalid according to Policy: Extra input fields: " + printable(field))
		}
	}
	return nil
}

// isFree tells the fields that a policy need not name.
func isFree(field string) bool {
	switch field {
	case "policy", "x-amz-signature", "bucket":
		return true
	}
	return strings.HasPrefix(field, "x-ignore-")
}
