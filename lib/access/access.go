// Package access decides who may do what to which bucket. It issues key pairs that describe themselves and verifies
// them without asking anybody, sorts every S3 request into what passes, what is answered and what is refused, and
// holds the decisions of the STS side. It knows no clock, no network and no Kubernetes: time and secrets are arguments.
package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"
)

// Permission is what a key may do with its bucket: a set of bits.
type Permission uint8

// The permissions. The zero Permission allows nothing and, as a need, asks for nothing but a key of the bucket.
const (
	Read      Permission = 1
	Write     Permission = 2
	ReadWrite Permission = Read | Write
)

// Covers tells whether p includes every bit of need.
func (p Permission) Covers(need Permission) bool { return p&need == need }

// String is "read", "write", "read,write" or "none".
func (p Permission) String() string {
	var words []string
	if p.Covers(Read) {
		words = append(words, "read")
	}
	if p.Covers(Write) {
		words = append(words, "write")
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ",")
}

// Tag is a short digest of a name, as a key carries it: of the bucket's S3 name or of the subject.
type Tag [16]byte

// String is the tag in hexadecimal, for logs and for the list of revoked subjects.
func (t Tag) String() string { return hex.EncodeToString(t[:]) }

// MarshalText is String, for JSON.
func (t Tag) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, t[:]), nil }

// UnmarshalText reads what MarshalText wrote.
func (t *Tag) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(t)) {
		return errTag
	}
	if _, err := hex.Decode(t[:], text); err != nil {
		return errTag
	}
	return nil
}

var errTag = errors.New("a tag is 32 hexadecimal characters")

// BucketTag is the tag of a bucket's S3 name.
func BucketTag(bucket string) Tag { return tagOf("bucket", bucket) }

// SubjectTag is the tag of a subject, the user name of a ServiceAccount (`system:serviceaccount:<namespace>:<name>`).
func SubjectTag(subject string) Tag { return tagOf("subject", subject) }

// tagOf separates the kinds, so that the tag of a bucket is never the tag of a subject.
func tagOf(kind, name string) Tag {
	sum := sha256.Sum256([]byte("system-s3 " + kind + "\x00" + name))
	return Tag(sum[:len(Tag{})])
}

// Grant is what a key is issued for.
type Grant struct {
	Bucket     string // the bucket's name in S3
	Permission Permission
	Subject    string    // the ServiceAccount's user name
	Expires    time.Time // first moment at which the key is refused; whole seconds, a fraction is cut off
}

// Key is a key pair as STS hands it out.
type Key struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string
	Expires         time.Time // what the key itself carries: UTC, whole seconds
}

// Claims is what an AccessKeyID says about itself.
type Claims struct {
	RingKeyID  uint8
	Expires    time.Time
	BucketTag  Tag
	Permission Permission
	Subject    Tag
}
