package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// InternalKeyID is the id of a plane's one S3 key inside Garage.
const InternalKeyID = "system-s3-internal"

// InternalKey is a plane's one S3 key inside Garage. The seed is the raw bytes, not their hexadecimal form.
func InternalKey(seed []byte) (id, secret string) {
	return InternalKeyID, hex.EncodeToString(mac(seed, "internal-s3-key"))
}

// RPCSecret is Garage's rpc_secret for an epoch, 64 hexadecimal characters: nodes of different epochs cannot meet. The
// secret is the raw bytes, not their hexadecimal form.
func RPCSecret(secret []byte, epoch int) string {
	return hex.EncodeToString(mac(secret, "rpc-epoch-"+strconv.Itoa(epoch)))
}

// storeIDBytes is how much of the code names a store: people read it, and nobody makes many stores.
const storeIDBytes = 8

// StoreID names the store that a seed belongs to and tells nothing of the seed. Seeds are made only where nothing of an
// earlier store is left, so another id is another store. The seed is the raw bytes, not their hexadecimal form.
func StoreID(seed []byte) string {
	return hex.EncodeToString(mac(seed, "store-id")[:storeIDBytes])
}

func mac(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range parts {
		h.Write([]byte(part)) // a hash never fails to write
	}
	return h.Sum(nil)
}
