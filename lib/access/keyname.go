package access

import "encoding/hex"

// KeyName is what logs call a key, the audit line of STS and the lines of gateways alike: 16 hexadecimal characters that
// tell nothing else about it. It is empty for what has not the form of a key; whether the key is genuine is not checked.
func KeyName(accessKeyID string) string {
	raw, ok := decodeKey(accessKeyID)
	if !ok {
		return ""
	}
	return hex.EncodeToString(raw[nonceAt:macAt])
}
