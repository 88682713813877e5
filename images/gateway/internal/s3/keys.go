package s3

import (
	"crypto/subtle"
	"sync"
	"time"

	"github.com/deckhouse/system-s3/lib/access"
)

// rememberedKeys bounds the keys that are remembered: twice as many, about a kilobyte each.
const rememberedKeys = 1024

// knownKey is a key that has proven a signature, with what it claims.
type knownKey struct {
	claims  access.Claims
	secret  string
	token   string          // the last session token that was found to be the key's
	session *access.Session // what it says, nil before one was sent
}

// keys remembers what the key ring says about keys: a client uses its key for thousands of requests, and each question
// costs several HMACs. Whether a key has expired is asked every time. Only keys that have proven a signature are
// remembered, so strangers cannot push out those in use. Safe for concurrent use.
type keys struct {
	mu            sync.Mutex
	ring          *access.RingKey // the ring that the keys were verified against, by its first key
	recent, older map[string]knownKey
}

// find is what is known about a key, by the ring of the moment.
func (k *keys) find(ring access.Ring, id string) (knownKey, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(ring.Keys) == 0 || k.ring != &ring.Keys[0] {
		return knownKey{}, false
	}
	if known, ok := k.recent[id]; ok {
		return known, true
	}
	known, ok := k.older[id]
	if ok {
		k.put(id, known)
	}
	return known, ok
}

func (k *keys) remember(ring access.Ring, id string, known knownKey) {
	if len(ring.Keys) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ring != &ring.Keys[0] {
		k.ring, k.recent, k.older = &ring.Keys[0], nil, nil
	}
	k.put(id, known)
}

// put forgets what has not been asked for since the last time that so many keys had come.
func (k *keys) put(id string, known knownKey) {
	if len(k.recent) >= rememberedKeys {
		k.older, k.recent = k.recent, nil
	}
	if k.recent == nil {
		k.recent = make(map[string]knownKey)
	}
	k.recent[id] = known
}

// secretOf is the secret of a consumer's key. The error is an access.Error.
func (k *keys) secretOf(ring access.Ring, id string, now time.Time) (string, error) {
	known, ok := k.find(ring, id)
	if !ok {
		_, secret, err := ring.Verify(id, now)
		return secret, err
	}
	if !now.Before(known.claims.Expires) {
		return "", access.ErrExpired
	}
	return known.secret, nil
}

// prove is what a key that has proven its signature claims, together with the session token that was sent, if any.
func (k *keys) prove(ring access.Ring, id, token string, now time.Time) (knownKey, error) {
	known, ok := k.find(ring, id)
	changed := !ok
	if !ok {
		var err error
		if known.claims, known.secret, err = ring.Verify(id, now); err != nil {
			return knownKey{}, err
		}
	}
	if !now.Before(known.claims.Expires) {
		return knownKey{}, access.ErrExpired
	}
	if token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(known.token)) != 1 {
		session, err := ring.VerifyToken(token, id)
		if err != nil {
			return known, err
		}
		known.token, known.session, changed = token, &session, true
	}
	if changed {
		k.remember(ring, id, known)
	}
	if token == "" {
		known.session = nil // what is not sent is not known
	}
	return known, nil
}
