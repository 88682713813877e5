package access

import (
	"strconv"
	"strings"
	"time"

	"github.com/deckhouse/system-s3/lib/names"
)

// What DurationSeconds may ask for, as AWS defines it.
const (
	MinLifetime = 15 * time.Minute
	MaxLifetime = 12 * time.Hour
)

// What STS answers by itself. The codes are those of AWS STS.
var (
	ErrValidation = Error{Code: "ValidationError", Status: statusBadRequest, Message: "The request does not meet the constraints of the operation."}
	ErrRejected   = Error{Code: "IDPRejectedClaim", Status: statusForbidden, Message: "The token does not belong to a ServiceAccount."}
)

const (
	suffixRead  = "read"
	suffixWrite = "write"

	maxLabel = 63  // a namespace or a ServiceAccount's namespace: a DNS label
	maxName  = 253 // an object's name: a DNS subdomain

	subjectPrefix = "system:serviceaccount:"
)

// Role is what a RoleArn asks for: a SystemBucket and, by the suffix, what of it.
type Role struct {
	Namespace  string
	Name       string
	Permission Permission // none without a suffix: whatever RBAC grants
}

// ParseRoleARN reads `arn:aws:iam::000000000000:role/<namespace>/<bucket>[/read|/write]` and nothing else: nothing is
// trimmed, unescaped or folded. The error is ErrValidation and does not repeat the input.
func ParseRoleARN(arn string) (Role, error) {
	invalid := ErrValidation.With("RoleArn must be " + names.RoleARNPrefix() + "<namespace>/<bucket>, optionally with /read or /write")
	rest, ok := strings.CutPrefix(arn, names.RoleARNPrefix())
	if !ok {
		return Role{}, invalid
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 2 && len(parts) != 3 {
		return Role{}, invalid
	}
	role := Role{Namespace: parts[0], Name: parts[1]}
	if !isLabel(role.Namespace) || !isSubdomain(role.Name) {
		return Role{}, invalid
	}
	if len(parts) == 2 {
		return role, nil
	}
	switch parts[2] {
	case suffixRead:
		role.Permission = Read
	case suffixWrite:
		role.Permission = Write
	default:
		return Role{}, invalid
	}
	return role, nil
}

// Asks is the permissions whose RBAC verdict Resolve needs, one SubjectAccessReview each.
func (r Role) Asks() []Permission {
	switch r.Permission {
	case Read, Write:
		return []Permission{r.Permission}
	default:
		return []Permission{Read, Write}
	}
}

// Resolve narrows what RBAC grants to what the role asks for: exactly the grant without a suffix, exactly the suffix
// with one. The error is ErrDenied.
func (r Role) Resolve(granted Permission) (Permission, error) {
	granted &= ReadWrite
	if r.Permission == 0 {
		if granted == 0 {
			return 0, ErrDenied.With("Not authorized to assume this role.")
		}
		return granted, nil
	}
	if !granted.Covers(r.Permission) {
		return 0, ErrDenied.With("Not authorized to assume this role.")
	}
	return r.Permission, nil
}

// Subject is a ServiceAccount.
type Subject struct {
	Namespace string
	Name      string
}

// ParseSubject reads the user name of a ServiceAccount and refuses every other user. The error is ErrRejected.
func ParseSubject(username string) (Subject, error) {
	rest, ok := strings.CutPrefix(username, subjectPrefix)
	namespace, name, found := strings.Cut(rest, ":")
	if !ok || !found || !isLabel(namespace) || !isSubdomain(name) {
		return Subject{}, ErrRejected
	}
	return Subject{Namespace: namespace, Name: name}, nil
}

// String is the user name of the ServiceAccount, as keys and audit lines carry it.
func (s Subject) String() string { return subjectPrefix + s.Namespace + ":" + s.Name }

// Lifetime is how long a key is to live: what DurationSeconds asks for ("" when it was not sent), cut to the module's
// own lifetime limit, which may be shorter than AWS's minimum. The error is ErrValidation.
func Lifetime(durationSeconds string, limit time.Duration) (time.Duration, error) {
	if durationSeconds == "" {
		return limit, nil
	}
	invalid := ErrValidation.With("DurationSeconds must be a whole number of seconds from 900 to 43200")
	seconds, err := strconv.ParseUint(durationSeconds, 10, 32)
	if err != nil {
		return 0, invalid
	}
	asked := time.Duration(seconds) * time.Second
	if asked < MinLifetime || asked > MaxLifetime {
		return 0, invalid
	}
	return min(asked, limit), nil
}

// isLabel is the DNS label of Kubernetes names.
func isLabel(s string) bool {
	return len(s) <= maxLabel && isWord(s)
}

// isSubdomain is the DNS subdomain of Kubernetes names: words joined by dots, of which only the whole has a limit.
func isSubdomain(s string) bool {
	if len(s) > maxName {
		return false
	}
	for word := range strings.SplitSeq(s, ".") {
		if !isWord(word) {
			return false
		}
	}
	return true
}

// isWord is lower-case letters, digits and inner hyphens.
func isWord(s string) bool {
	if s == "" || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
