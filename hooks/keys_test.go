package main

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
)

func ringSecret(ring string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: key-ring, namespace: d8-system-s3}\ndata: {ring.json: %s}",
		base64.StdEncoding.EncodeToString([]byte(ring)))
}

func publishedRing(t *testing.T, r running) access.Ring {
	t.Helper()
	ring, err := access.ParseRing([]byte(r.ValuesGet(keyRingPath).String()))
	require.NoError(t, err)
	return ring
}

func TestKeysRotate(t *testing.T) {
	clock := clockwork.NewFakeClockAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	r := onHarness(t, keysConfig(), rotateKeys)
	r.DependencyContainer().SetClock(clock)

	r.KubeStateSet("")
	r.run()
	first := publishedRing(t, r)
	require.Len(t, first.Keys, 1, "the first run makes a key")

	r.run()
	require.Equal(t, first, publishedRing(t, r), "kept in the values until the Secret is there")

	r.KubeStateSet(ringSecret(r.ValuesGet(keyRingPath).String()))
	r.ValuesDelete(keyRingPath)
	r.run()
	require.Equal(t, first, publishedRing(t, r), "read back from the Secret")

	clock.Advance(25 * time.Hour)
	r.run()
	second := publishedRing(t, r)
	require.Len(t, second.Keys, 2, "a day later there is a second key, and the first is still accepted")
	require.Equal(t, first.Keys[0], second.Keys[0])
}

func TestUnreadableRingIsReplaced(t *testing.T) {
	r := onHarness(t, keysConfig(), rotateKeys)
	r.KubeStateSet(ringSecret("not-to-be-quoted"))
	r.run()
	require.Len(t, publishedRing(t, r).Keys, 1)
	require.Contains(t, r.LoggerOutput().String(), "key-ring is unreadable")
	require.NotContains(t, r.LoggerOutput().String(), "not-to-be-quoted")
}

func TestSecretWithoutARingIsReplaced(t *testing.T) {
	r := onHarness(t, keysConfig(), rotateKeys)
	r.KubeStateSet("apiVersion: v1\nkind: Secret\nmetadata: {name: key-ring, namespace: d8-system-s3}")
	r.run()
	require.Len(t, publishedRing(t, r).Keys, 1)
}
