package revocation

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
)

func TestWhoseKeysAreRefused(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	alice, bob := access.SubjectTag("system:serviceaccount:d8-a:alice"), access.SubjectTag("system:serviceaccount:d8-a:bob")
	logs, data := access.BucketTag("d8-a-logs-abc"), access.BucketTag("d8-a-data-abc")
	cases := map[string]struct {
		reason string
		entry  Entry
		claims access.Claims
		want   error
	}{
		"everything": {"", Entry{Subject: alice, Until: now.Add(time.Second)}, access.Claims{Subject: alice, BucketTag: logs, Permission: access.Read}, ErrRevoked},
		"another subject": {
			"", Entry{Subject: bob, Until: now.Add(time.Second)}, access.Claims{Subject: alice, BucketTag: logs, Permission: access.Read}, nil,
		},
		"another bucket": {
			"a right is lost on one bucket",
			Entry{Subject: alice, Bucket: data, Until: now.Add(time.Second)},
			access.Claims{Subject: alice, BucketTag: logs, Permission: access.Read},
			nil,
		},
		"a permission of the key": {
			"the key has more than is left",
			Entry{Subject: alice, Bucket: logs, Permission: access.Write, Until: now.Add(time.Second)},
			access.Claims{Subject: alice, BucketTag: logs, Permission: access.ReadWrite},
			ErrRevoked,
		},
		"a permission that the key has not": {
			"a key for what is left goes on working",
			Entry{Subject: alice, Bucket: logs, Permission: access.Write, Until: now.Add(time.Second)},
			access.Claims{Subject: alice, BucketTag: logs, Permission: access.Read},
			nil,
		},
		"over": {"keys from before have expired", Entry{Subject: alice, Until: now}, access.Claims{Subject: alice, BucketTag: logs, Permission: access.Read}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var list List
			require.NoError(t, list.Check(c.claims, now), "nothing is revoked before the first push")
			data, err := json.Marshal([]Entry{c.entry})
			require.NoError(t, err)
			var pushed []Entry
			require.NoError(t, json.Unmarshal(data, &pushed))
			require.NoError(t, list.Replace(pushed))
			require.Equal(t, c.want, list.Check(c.claims, now), c.reason)
			require.NoError(t, list.Replace(nil))
			require.NoError(t, list.Check(c.claims, now), "a list replaces the one before")
		})
	}
}

func TestANonsensicalListChangesNothing(t *testing.T) {
	alice, until := access.SubjectTag("alice"), time.Now().Add(time.Hour)
	var list List
	require.NoError(t, list.Replace([]Entry{{Subject: alice, Until: until}}))
	for name, entry := range map[string]Entry{
		"nobody":             {Until: until},
		"no end":             {Subject: alice},
		"unknown permission": {Subject: alice, Permission: 4, Until: until},
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, list.Replace([]Entry{{Subject: access.SubjectTag("bob"), Until: until}, entry}))
			require.Equal(t, 1, list.Len())
			require.ErrorIs(t, list.Check(access.Claims{Subject: alice}, time.Now()), access.ErrDenied)
		})
	}
	require.Error(t, list.Replace(make([]Entry, MaxEntries+1)))
}
