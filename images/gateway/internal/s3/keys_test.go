package s3

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
)

func issue(t *testing.T, ring access.Ring, nonce int, expires time.Time) access.Key {
	t.Helper()
	key, err := access.Issue(ring.Keys[len(ring.Keys)-1], access.Grant{
		Bucket: "d8-test-logs-abcdefghijkl", Permission: access.Read, Subject: "s", Expires: expires,
	}, [8]byte{byte(nonce), byte(nonce >> 8)})
	require.NoError(t, err)
	return key
}

func TestWhatIsRememberedOfAKeyIsNeverOlderThanTheRing(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ring := access.Ring{}.Rotate(now.Add(-time.Hour), make([]byte, 32))
	other := access.Ring{}.Rotate(now, append(make([]byte, 31), 1))
	key, twin := issue(t, ring, 1, now.Add(time.Hour)), issue(t, ring, 2, now.Add(time.Hour))
	var known keys
	for range 2 { // asked, then remembered
		secret, err := known.secretOf(ring, key.AccessKeyID, now)
		require.NoError(t, err)
		require.Equal(t, key.SecretAccessKey, secret)
		proven, err := known.prove(ring, key.AccessKeyID, key.SessionToken, now)
		require.NoError(t, err)
		require.Equal(t, "d8-test-logs-abcdefghijkl", proven.session.Bucket)
		require.Equal(t, access.Read, proven.claims.Permission)
	}
	proven, err := known.prove(ring, key.AccessKeyID, "", now)
	require.NoError(t, err)
	require.Nil(t, proven.session, "a token that was not sent is not known")
	_, err = known.prove(ring, key.AccessKeyID, twin.SessionToken, now)
	require.ErrorIs(t, err, access.ErrInvalidToken, "another key's token")

	for _, late := range []time.Duration{time.Hour, 2 * time.Hour} {
		_, err = known.secretOf(ring, key.AccessKeyID, now.Add(late))
		require.ErrorIs(t, err, access.ErrExpired)
		_, err = known.prove(ring, key.AccessKeyID, "", now.Add(late))
		require.ErrorIs(t, err, access.ErrExpired)
	}
	_, err = known.secretOf(other, key.AccessKeyID, now)
	require.ErrorIs(t, err, access.ErrUnknownKey, "a ring without the key's signer")
	_, err = known.secretOf(access.Ring{}, key.AccessKeyID, now)
	require.ErrorIs(t, err, access.ErrUnknownKey)
}

func TestStrangersPushOutNoKeyInUse(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ring := access.Ring{}.Rotate(now.Add(-time.Hour), make([]byte, 32))
	var known keys
	used := issue(t, ring, 0, now.Add(time.Hour))
	_, err := known.prove(ring, used.AccessKeyID, "", now)
	require.NoError(t, err)
	for i := range 5 * rememberedKeys {
		_, err := known.secretOf(ring, fmt.Sprint("stranger-", i), now)
		require.ErrorIs(t, err, access.ErrUnknownKey)
	}
	require.Len(t, known.recent, 1)
	for i := range 5 * rememberedKeys {
		_, err := known.prove(ring, issue(t, ring, 1+i, now.Add(time.Hour)).AccessKeyID, "", now)
		require.NoError(t, err)
		if i%100 == 0 {
			_, found := known.find(ring, used.AccessKeyID)
			require.True(t, found)
		}
	}
	require.LessOrEqual(t, len(known.recent)+len(known.older), 2*rememberedKeys)
}
