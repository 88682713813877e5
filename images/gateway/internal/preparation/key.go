package preparation

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
)

const (
	nodeKeySize   = ed25519.PrivateKeySize
	rpcSecretSize = 32
)

// nodeKey is a Garage node's identity: the 32-byte seed and the 32-byte public key, which is the node id.
type nodeKey []byte

func (k nodeKey) public() []byte { return k[ed25519.SeedSize:] }

func (k nodeKey) id() string { return hex.EncodeToString(k.public()) }

// validate refuses halves that do not belong together: Garage would start under an id that it cannot prove.
func (k nodeKey) validate() error {
	if len(k) != nodeKeySize {
		return errors.New("a node key has 64 bytes: seed and public key")
	}
	if made := ed25519.NewKeyFromSeed(k[:ed25519.SeedSize]); !bytes.Equal(made, k) {
		return errors.New("the public half of the node key does not belong to its seed")
	}
	return nil
}

// decodeHex does not repeat its input in the error, which is a secret.
func decodeHex(text []byte) ([]byte, error) {
	raw, err := hex.DecodeString(string(text))
	if err != nil || len(raw) != rpcSecretSize {
		return nil, errors.New("not 64 hexadecimal characters")
	}
	return raw, nil
}

func trim(data []byte) []byte { return bytes.TrimSpace(data) }
