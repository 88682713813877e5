package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/deckhouse/system-s3/lib/names"
)

const (
	// nodeKeys are made for every replica a plane can have, so that a plane that grows needs no new ones.
	nodeKeys = 3
	// secretBytes is the length of every random secret before it is written in hexadecimal.
	secretBytes = 32
)

// planeValues are the secrets of a plane as the chart prints them into Secret garage-<plane>.
type planeValues struct {
	RPCSecret    string   `json:"rpcSecret"`
	AdminToken   string   `json:"adminToken"`
	MetricsToken string   `json:"metricsToken"`
	Seed         string   `json:"seed"`
	NodeKeys     []string `json:"nodeKeys"` // base64 of 32 bytes seed and 32 bytes public key
	NodeIDs      []string `json:"nodeIDs"`  // hexadecimal public keys
}

// newPlaneValues makes the secrets of a new plane.
func newPlaneValues() (planeValues, error) {
	var v planeValues
	for _, into := range []*string{&v.RPCSecret, &v.AdminToken, &v.MetricsToken, &v.Seed} {
		secret := make([]byte, secretBytes)
		if _, err := rand.Read(secret); err != nil {
			return planeValues{}, fmt.Errorf("read random bytes: %w", err)
		}
		*into = hex.EncodeToString(secret)
	}
	for range nodeKeys {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return planeValues{}, fmt.Errorf("generate node key: %w", err)
		}
		v.addNode(key)
	}
	return v, nil
}

// addNode appends an identity. Go keeps an ed25519 key in Garage's very form: the seed, then the public key.
func (v *planeValues) addNode(key ed25519.PrivateKey) {
	v.NodeKeys = append(v.NodeKeys, base64.StdEncoding.EncodeToString(key))
	v.NodeIDs = append(v.NodeIDs, hex.EncodeToString(key[ed25519.SeedSize:]))
}

// readSecret reads the secrets back. Its errors name the key and never its content.
func readSecret(data map[string][]byte) (planeValues, error) {
	var v planeValues
	for key, into := range map[string]*string{
		names.RPCSecretKey: &v.RPCSecret, names.AdminTokenKey: &v.AdminToken, names.MetricsTokenKey: &v.MetricsToken, names.SeedKey: &v.Seed,
	} {
		*into = string(data[key])
	}
	for n := range nodeKeys {
		v.NodeKeys = append(v.NodeKeys, base64.StdEncoding.EncodeToString(data[names.NodeKeyKey(n)]))
	}
	return v.checked()
}

// parsePlaneValues reads the secrets back from the values.
func parsePlaneValues(value gjson.Result) (planeValues, error) {
	if !value.Exists() {
		return planeValues{}, errors.New("no values")
	}
	var v planeValues
	if err := json.Unmarshal([]byte(value.Raw), &v); err != nil {
		return planeValues{}, errors.New("values are not the secrets of a plane") // the decoder's message may quote them
	}
	return v.checked()
}

// checked completes the secrets with the node ids, or names what is missing.
func (v planeValues) checked() (planeValues, error) {
	for _, secret := range []struct{ key, value string }{
		{names.RPCSecretKey, v.RPCSecret}, {names.AdminTokenKey, v.AdminToken}, {names.MetricsTokenKey, v.MetricsToken}, {names.SeedKey, v.Seed},
	} {
		if raw, err := hex.DecodeString(secret.value); err != nil || len(raw) != secretBytes {
			return planeValues{}, fmt.Errorf("key %s is missing or is not %d bytes in hexadecimal", secret.key, secretBytes)
		}
	}
	keys := slices.Clone(v.NodeKeys)
	v.NodeKeys, v.NodeIDs = nil, nil
	if len(keys) != nodeKeys {
		return planeValues{}, fmt.Errorf("%d node keys, not %d", len(keys), nodeKeys)
	}
	for n, encoded := range keys {
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || !isNodeKey(key) {
			return planeValues{}, fmt.Errorf("key %s is missing or is not an ed25519 key pair", names.NodeKeyKey(n))
		}
		v.addNode(key)
	}
	return v, nil
}

// isNodeKey tells whether the bytes are a seed followed by the public key that belongs to it.
func isNodeKey(key []byte) bool {
	return len(key) == ed25519.PrivateKeySize && ed25519.NewKeyFromSeed(key[:ed25519.SeedSize]).Equal(ed25519.PrivateKey(key))
}
