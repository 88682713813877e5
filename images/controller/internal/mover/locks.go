package mover

import "sync"

// keyLocks lets one at a time have an object. The zero value is ready for use.
type keyLocks struct {
	mu   sync.Mutex
	held map[Key]*keyLock
}

type keyLock struct {
	mu    sync.Mutex
	users int
}

// lock waits for the object; the result gives it back.
func (l *keyLocks) lock(key Key) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[Key]*keyLock{}
	}
	own := l.held[key]
	if own == nil {
		own = &keyLock{}
		l.held[key] = own
	}
	own.users++
	l.mu.Unlock()
	own.mu.Lock()
	return func() {
		own.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(l.held, key)
		}
	}
}
