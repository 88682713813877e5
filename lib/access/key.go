package access

import (
	"crypto/hmac"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// An AccessKeyID is keyPrefix and the base32 of, in this order:
//
//	format 1 | ring id 1 | expiry 4 (Unix seconds, big endian) | permission 1 | bucket tag 16 | subject tag 16 |
//	nonce 8 | MAC 16
//
// The MAC covers everything before it, so nothing in a key can be changed without the ring's secret, and there is one
// spelling of each key only.
const (
	keyPrefix = "SYSS3"
	keyFormat = 1

	nonceSize = 8
	macSize   = 16

	expiryAt     = 2
	permissionAt = expiryAt + 4
	bucketAt     = permissionAt + 1
	subjectAt    = bucketAt + len(Tag{})
	nonceAt      = subjectAt + len(Tag{})
	macAt        = nonceAt + nonceSize
	keySize      = macAt + macSize
)

// Labels that keep apart what is derived from one ring secret.
const (
	labelID     = "system-s3/v1/access-key-id\x00"
	labelSecret = "system-s3/v1/secret-access-key\x00" //nolint:gosec // a label, no secret
	labelToken  = "system-s3/v1/session-token\x00"     //nolint:gosec // a label, no secret
)

var keyEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// keyLength is the length of every AccessKeyID; S3 allows 16 to 128.
var keyLength = len(keyPrefix) + keyEncoding.EncodedLen(keySize)

// Issue makes the key pair of a grant. The nonce must be random: it alone tells apart two keys of one subject made in
// the same second. Errors are about the grant, never about what a client sent.
func Issue(k RingKey, g Grant, nonce [8]byte) (Key, error) {
	expires := g.Expires.UTC().Truncate(time.Second)
	switch unix := expires.Unix(); {
	case len(k.Secret) < minRingSecret || k.ID == 0:
		return Key{}, errors.New("issue key: unusable ring key")
	case g.Bucket == "" || g.Subject == "":
		return Key{}, errors.New("issue key: grant without bucket or subject")
	case g.Permission == 0 || !ReadWrite.Covers(g.Permission):
		return Key{}, fmt.Errorf("issue key: permission %d is none", g.Permission)
	case unix <= 0 || unix > math.MaxUint32:
		return Key{}, errors.New("issue key: expiry does not fit")
	}

	raw := make([]byte, 0, keySize)
	raw = append(raw, keyFormat, k.ID)
	raw = binary.BigEndian.AppendUint32(raw, uint32(expires.Unix())) //nolint:gosec // checked above
	raw = append(raw, byte(g.Permission))
	bucket, subject := BucketTag(g.Bucket), SubjectTag(g.Subject)
	raw = append(raw, bucket[:]...)
	raw = append(raw, subject[:]...)
	raw = append(raw, nonce[:]...)
	raw = append(raw, keyMAC(k, raw)...)

	id := keyPrefix + keyEncoding.EncodeToString(raw)
	token, err := issueToken(k, Session{AccessKeyID: id, Bucket: g.Bucket, Permission: g.Permission, Subject: g.Subject, Expires: expires})
	if err != nil {
		return Key{}, err
	}
	return Key{AccessKeyID: id, SecretAccessKey: secretOf(k, id), SessionToken: token, Expires: expires}, nil
}

// Verify checks an access key id against the ring and returns what it claims and its secret. The error is ErrUnknownKey
// for whatever no key of this ring has issued, and ErrExpired, only for a genuine key, from the second it expires.
func (r Ring) Verify(accessKeyID string, now time.Time) (Claims, string, error) {
	raw, ok := decodeKey(accessKeyID)
	if !ok {
		return Claims{}, "", ErrUnknownKey
	}
	key, ok := r.find(raw[1])
	if !ok || !hmac.Equal(raw[macAt:], keyMAC(key, raw[:macAt])) {
		return Claims{}, "", ErrUnknownKey
	}
	claims := Claims{
		RingKeyID:  raw[1],
		Expires:    time.Unix(int64(binary.BigEndian.Uint32(raw[expiryAt:])), 0).UTC(),
		BucketTag:  Tag(raw[bucketAt:subjectAt]),
		Permission: Permission(raw[permissionAt]),
		Subject:    Tag(raw[subjectAt:nonceAt]),
	}
	if !now.Before(claims.Expires) {
		return Claims{}, "", ErrExpired
	}
	return claims, secretOf(key, accessKeyID), nil
}

// decodeKey undoes the encoding of a key and refuses every other spelling of the same bytes.
func decodeKey(id string) ([]byte, bool) {
	if len(id) != keyLength || !strings.HasPrefix(id, keyPrefix) {
		return nil, false
	}
	text := id[len(keyPrefix):]
	raw, err := keyEncoding.DecodeString(text)
	if err != nil || len(raw) != keySize || raw[0] != keyFormat {
		return nil, false
	}
	// Base32 leaves bits over, and the decoder skips line breaks.
	return raw, keyEncoding.EncodeToString(raw) == text
}

func keyMAC(k RingKey, raw []byte) []byte {
	return mac(k.Secret, labelID, string(raw))[:macSize]
}

func secretOf(k RingKey, id string) string {
	return base64.RawURLEncoding.EncodeToString(mac(k.Secret, labelSecret, id))
}
