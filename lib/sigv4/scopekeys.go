package sigv4

import "sync"

// scopeKeysSize bounds the derived keys that are remembered: twice as many, some hundred bytes each.
const scopeKeysSize = 1024

// scopeKeys remembers derived signing keys: a client uses its key for a day, and deriving costs four HMACs. Only keys
// that have proven a signature are remembered, so strangers cannot push out those in use. The zero value is empty and
// ready; it is safe for concurrent use.
type scopeKeys struct {
	mu            sync.Mutex
	recent, older map[scopeKey][]byte
}

type scopeKey struct {
	scope  scope
	secret string
}

func (k *scopeKeys) derive(s scope, secret string) []byte {
	id := scopeKey{s, secret}
	k.mu.Lock()
	defer k.mu.Unlock()
	if key, ok := k.recent[id]; ok {
		return key
	}
	if key, ok := k.older[id]; ok {
		k.put(id, key)
		return key
	}
	return s.key(secret)
}

func (k *scopeKeys) remember(s scope, secret string, key []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(scopeKey{s, secret}, key)
}

// put forgets what has not been asked for since the last time that so many keys had come.
func (k *scopeKeys) put(id scopeKey, key []byte) {
	if len(k.recent) >= scopeKeysSize {
		k.older, k.recent = k.recent, nil
	}
	if k.recent == nil {
		k.recent = make(map[scopeKey][]byte)
	}
	k.recent[id] = key
}
