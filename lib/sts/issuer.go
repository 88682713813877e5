package sts

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/deckhouse/system-s3/lib/access"
)

// RingIssuer issues keys with the signing key of a ring that is read anew for each key, so that a rotated ring is taken
// up without a restart.
type RingIssuer struct {
	// Ring reads the key ring.
	Ring func() (access.Ring, error)
	// Now is the clock, the same as the Handler's.
	Now func() time.Time
}

// Issue makes the key pair of a grant.
func (i RingIssuer) Issue(grant access.Grant) (access.Key, error) {
	ring, err := i.Ring()
	if err != nil {
		return access.Key{}, fmt.Errorf("read key ring: %w", err)
	}
	key, err := ring.Signing(i.Now())
	if err != nil {
		return access.Key{}, fmt.Errorf("choose signing key: %w", err)
	}
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails: it ends the program instead
	return access.Issue(key, grant, nonce)
}
