package access

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRotationWithKeysInFlight has replicas of STS and gateways that read a new ring at different times, minutes late,
// as kubelets bring it to them: whoever issued a key, every gateway takes it until its end.
func TestRotationWithKeysInFlight(t *testing.T) {
	const (
		step  = 3 * time.Minute
		steps = 3 * 24 * 20 // three days
		life  = 30 * time.Minute
	)
	lags := []int{0, 1, 3} // steps; less than signingDelay
	var (
		history []Ring
		alive   []Key
		signers = map[uint8]bool{}
	)
	for now, i := noon, 0; i < steps; now, i = now.Add(step), i+1 {
		last := Ring{}
		if i > 0 {
			last = history[i-1]
		}
		history = append(history, last.Rotate(now, bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 16)))
		for nonce, lag := range lags {
			signing, err := history[max(0, i-lag)].Signing(now)
			require.NoError(t, err)
			signers[signing.ID] = true
			g := grant()
			g.Expires = now.Add(life)
			key, err := Issue(signing, g, [8]byte{byte(nonce)})
			require.NoError(t, err)
			alive = append(alive, key)
		}
		living := alive[:0]
		for _, key := range alive {
			if !now.Before(key.Expires) {
				continue
			}
			living = append(living, key)
			for _, lag := range lags {
				_, _, err := history[max(0, i-lag)].Verify(key.AccessKeyID, now)
				require.NoError(t, err, "issued to live until %s, now %s, a gateway %s late", key.Expires, now, time.Duration(lag)*step)
			}
		}
		alive = living
	}
	require.Len(t, signers, 3, "the ring was rotated while keys lived")
}
