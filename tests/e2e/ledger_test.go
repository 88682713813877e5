package e2e

import (
	"strings"
	"sync"
)

// ledger remembers the secrets that the tests were given, to look for them later where they must not be.
type ledger struct {
	mu      sync.Mutex
	secrets map[string]string // secret -> what it is
}

func (l *ledger) note(what string, secrets ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.secrets == nil {
		l.secrets = map[string]string{}
	}
	for _, secret := range secrets {
		l.secrets[secret] = what
	}
}

// find is what of the remembered is in the text, by its kind and never by its value.
func (l *ledger) find(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for secret, what := range l.secrets {
		if strings.Contains(text, secret) {
			found = append(found, what)
		}
	}
	return found
}

func (l *ledger) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.secrets)
}
