package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// signingDelay is how old a key must be to sign: by then every gateway has read it.
	signingDelay = 10 * time.Minute
	// rotationPeriod is how long the newest key stays the newest.
	rotationPeriod = 24 * time.Hour
	// retention is how long a key is accepted after its successor was made: the successor's signing delay and the
	// longest life of anything signed until then, MaxLifetime, are over by then.
	retention = MaxLifetime + time.Hour

	minRingSecret = 32
	maxRingKeys   = 16
)

// ErrEmptyRing means that there is no key to sign with.
var ErrEmptyRing = errors.New("key ring is empty")

// RingKey is one signing key: everything issued with it is an HMAC of Secret.
type RingKey struct {
	ID        uint8     `json:"id"`
	Secret    []byte    `json:"secret"`
	CreatedAt time.Time `json:"createdAt"`
}

// Ring is the signing keys, the newest last.
type Ring struct {
	Keys []RingKey `json:"keys"`
}

// ParseRing reads the JSON of a ring and refuses one that could not be used safely: without keys, with an id twice,
// a short secret or keys out of order.
func ParseRing(data []byte) (Ring, error) {
	var ring Ring
	if err := json.Unmarshal(data, &ring); err != nil {
		// The decoder's message may quote the input, which is secret.
		return Ring{}, errors.New("parse key ring: not the JSON of a ring")
	}
	if err := ring.validate(); err != nil {
		return Ring{}, fmt.Errorf("parse key ring: %w", err)
	}
	return ring, nil
}

func (r Ring) validate() error {
	if len(r.Keys) == 0 {
		return ErrEmptyRing
	}
	if len(r.Keys) > maxRingKeys {
		return fmt.Errorf("%d keys, at most %d are expected", len(r.Keys), maxRingKeys)
	}
	seen := map[uint8]bool{}
	for i, key := range r.Keys {
		switch {
		case key.ID == 0:
			return errors.New("a key has no id")
		case seen[key.ID]:
			return fmt.Errorf("id %d occurs twice", key.ID)
		case len(key.Secret) < minRingSecret:
			return fmt.Errorf("the secret of key %d is shorter than %d bytes", key.ID, minRingSecret)
		case key.CreatedAt.IsZero():
			return fmt.Errorf("key %d has no time of creation", key.ID)
		case i > 0 && key.CreatedAt.Before(r.Keys[i-1].CreatedAt):
			return fmt.Errorf("key %d is older than the key before it", key.ID)
		}
		seen[key.ID] = true
	}
	return nil
}

// Marshal is the JSON of the ring, as ParseRing reads it.
func (r Ring) Marshal() ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("marshal key ring: %w", err)
	}
	return data, nil
}

// Signing is the key to issue with: the newest that every gateway has had time to read, else the oldest. The error is
// ErrEmptyRing.
func (r Ring) Signing(now time.Time) (RingKey, error) {
	if len(r.Keys) == 0 {
		return RingKey{}, ErrEmptyRing
	}
	for _, key := range slices.Backward(r.Keys) {
		if now.Sub(key.CreatedAt) >= signingDelay {
			return key, nil
		}
	}
	return r.Keys[0], nil
}

// NeedsRotation tells whether Rotate would change the ring.
func (r Ring) NeedsRotation(now time.Time) bool {
	return r.needsKey(now) || r.outlived(now) > 0
}

// Rotate is the ring as it should be now: with a new key made of secret when the newest is a day old or there is none,
// and without keys whose last signature has expired. The secret is used only when a key is added; it must be at least
// 32 random bytes.
func (r Ring) Rotate(now time.Time, secret []byte) Ring {
	keys := slices.Clone(r.Keys[r.outlived(now):])
	if r.needsKey(now) {
		keys = append(keys, RingKey{ID: nextID(keys), Secret: slices.Clone(secret), CreatedAt: now.UTC().Truncate(time.Second)})
	}
	return Ring{Keys: keys}
}

func (r Ring) needsKey(now time.Time) bool {
	if len(r.Keys) == 0 {
		return true
	}
	return now.Sub(r.Keys[len(r.Keys)-1].CreatedAt) >= rotationPeriod
}

// outlived is the number of leading keys that nothing living was signed with.
func (r Ring) outlived(now time.Time) int {
	n := 0
	for n+1 < len(r.Keys) && now.Sub(r.Keys[n+1].CreatedAt) >= retention {
		n++
	}
	return n
}

// nextID follows the newest key's id and skips those in use; 0 is never an id.
func nextID(keys []RingKey) uint8 {
	var id uint8
	if len(keys) > 0 {
		id = keys[len(keys)-1].ID
	}
	for {
		id++
		if id != 0 && !slices.ContainsFunc(keys, func(k RingKey) bool { return k.ID == id }) {
			return id
		}
	}
}

// find is the key with the id.
func (r Ring) find(id uint8) (RingKey, bool) {
	i := slices.IndexFunc(r.Keys, func(k RingKey) bool { return k.ID == id })
	if i < 0 {
		return RingKey{}, false
	}
	return r.Keys[i], true
}
