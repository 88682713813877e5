package access

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// maxToken bounds what is decoded: names are Kubernetes names, so that no token of ours comes near it.
const maxToken = 4096

// Session is the readable claims of a SessionToken.
type Session struct {
	AccessKeyID string     `json:"key"`
	Bucket      string     `json:"bucket"` // the bucket's name in S3
	Permission  Permission `json:"permission"`
	Subject     string     `json:"subject"`
	Expires     time.Time  `json:"expires"`
}

// issueToken writes `<base64url of the JSON>.<base64url of its MAC>`.
func issueToken(k RingKey, s Session) (string, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("issue session token: %w", err)
	}
	body := base64.RawURLEncoding.EncodeToString(data)
	return body + "." + tokenMAC(k, body), nil
}

func tokenMAC(k RingKey, body string) string {
	return base64.RawURLEncoding.EncodeToString(mac(k.Secret, labelToken, body))
}

// VerifyToken checks that a SessionToken was issued together with the access key id and returns its claims. The key is
// not verified here and expiry is not looked at: both are Verify's business. The error is ErrInvalidToken.
func (r Ring) VerifyToken(token, accessKeyID string) (Session, error) {
	raw, ok := decodeKey(accessKeyID)
	if !ok || len(token) > maxToken {
		return Session{}, ErrInvalidToken
	}
	key, ok := r.find(raw[1])
	body, sum, found := strings.Cut(token, ".")
	if !ok || !found || !hmac.Equal([]byte(sum), []byte(tokenMAC(key, body))) {
		return Session{}, ErrInvalidToken
	}
	var session Session
	data, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(data, &session) != nil || session.AccessKeyID != accessKeyID {
		return Session{}, ErrInvalidToken
	}
	return session, nil
}
