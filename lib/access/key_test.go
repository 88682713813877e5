package access

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func ringKey(id uint8, fill byte) RingKey {
	return RingKey{ID: id, Secret: bytes.Repeat([]byte{fill}, 32), CreatedAt: noon.Add(-time.Hour)}
}

func grant() Grant {
	return Grant{
		Bucket: "d8-demo-logs-abcdefghijkl", Permission: ReadWrite, Subject: "system:serviceaccount:d8-demo:app",
		Expires: noon.Add(30 * time.Minute),
	}
}

func issued(t *testing.T, k RingKey, g Grant) Key {
	t.Helper()
	key, err := Issue(k, g, [8]byte{1, 2, 3})
	require.NoError(t, err)
	return key
}

func TestIssuedKeyVerifies(t *testing.T) {
	ring := Ring{Keys: []RingKey{ringKey(1, 'a'), ringKey(2, 'b')}}
	g := grant()
	g.Expires = g.Expires.Add(700 * time.Millisecond)
	key := issued(t, ring.Keys[1], g)

	assert.Regexp(t, regexp.MustCompile(`^SYSS3[A-Z2-7]+$`), key.AccessKeyID)
	assert.LessOrEqual(t, len(key.AccessKeyID), 128)
	assert.Equal(t, noon.Add(30*time.Minute), key.Expires, "whole seconds, never later than asked for")

	claims, secret, err := ring.Verify(key.AccessKeyID, noon)
	require.NoError(t, err)
	assert.Equal(t, key.SecretAccessKey, secret)
	assert.Equal(t, Claims{
		RingKeyID: 2, Expires: key.Expires, BucketTag: BucketTag(g.Bucket), Permission: ReadWrite, Subject: SubjectTag(g.Subject),
	}, claims)

	session, err := ring.VerifyToken(key.SessionToken, key.AccessKeyID)
	require.NoError(t, err)
	assert.Equal(t, Session{
		AccessKeyID: key.AccessKeyID, Bucket: g.Bucket, Permission: ReadWrite, Subject: g.Subject, Expires: key.Expires,
	}, session)
}

func TestIssueRefuses(t *testing.T) {
	cases := map[string]struct {
		key    func(*RingKey)
		grant  func(*Grant)
		reason string
	}{
		"short secret":        {key: func(k *RingKey) { k.Secret = k.Secret[:16] }, reason: "a ring is never weak"},
		"no ring id":          {key: func(k *RingKey) { k.ID = 0 }, reason: "the zero RingKey signs nothing"},
		"no bucket":           {grant: func(g *Grant) { g.Bucket = "" }, reason: "a key is for one bucket"},
		"no subject":          {grant: func(g *Grant) { g.Subject = "" }, reason: "a key is somebody's"},
		"no permission":       {grant: func(g *Grant) { g.Permission = 0 }, reason: "such a key could still see that the bucket is there"},
		"unknown permission":  {grant: func(g *Grant) { g.Permission = 4 }, reason: "there are two bits"},
		"expiry before 1970":  {grant: func(g *Grant) { g.Expires = time.Time{} }, reason: "the zero time is a mistake"},
		"expiry beyond fours": {grant: func(g *Grant) { g.Expires = time.Unix(1<<32, 0) }, reason: "would wrap around to 1970"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			k, g := ringKey(1, 'a'), grant()
			if c.key != nil {
				c.key(&k)
			}
			if c.grant != nil {
				c.grant(&g)
			}
			_, err := Issue(k, g, [8]byte{})
			require.Error(t, err, c.reason)
		})
	}
}

func TestVerifyRefuses(t *testing.T) {
	own := ringKey(1, 'a')
	ring := Ring{Keys: []RingKey{own, ringKey(7, 'b')}}
	good := issued(t, own, grant()).AccessKeyID
	foreign := issued(t, RingKey{ID: 1, Secret: bytes.Repeat([]byte{'x'}, 32)}, grant()).AccessKeyID
	unknown := issued(t, ringKey(9, 'a'), grant()).AccessKeyID
	raw, ok := decodeKey(good)
	require.True(t, ok)

	forged := func(change func(b []byte)) string {
		b := bytes.Clone(raw)
		change(b)
		return keyPrefix + keyEncoding.EncodeToString(b)
	}
	last := good[len(good)-1]
	alias := byte('A')
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") {
		if b, err := keyEncoding.DecodeString(good[len(keyPrefix):len(good)-1] + string(c)); err == nil && c != last && bytes.Equal(b, raw) {
			alias = c
		}
	}
	require.NotEqual(t, byte('A'), alias, "base32 of this length leaves a bit over, or the test tests nothing")

	cases := map[string]struct {
		id     string
		now    time.Time
		want   error
		reason string
	}{
		"empty":                     {"", noon, ErrUnknownKey, "nothing is no key"},
		"an AWS key":                {"AKIAIOSFODNN7EXAMPLE", noon, ErrUnknownKey, "another issuer"},
		"the internal key":          {InternalKeyID, noon, ErrUnknownKey, "consumers must not come in as the gateway"},
		"prefix only":               {keyPrefix, noon, ErrUnknownKey, "truncated"},
		"truncated":                 {good[:len(good)-1], noon, ErrUnknownKey, "the MAC is not whole"},
		"longer":                    {good + "A", noon, ErrUnknownKey, "one length"},
		"overlong":                  {good + strings.Repeat("A", 1<<20), noon, ErrUnknownKey, "cheap to refuse"},
		"another prefix":            {"SYSS4" + good[len(keyPrefix):], noon, ErrUnknownKey, "not ours"},
		"lower case":                {strings.ToLower(good), noon, ErrUnknownKey, "one spelling"},
		"line break in it":          {good[:20] + "\n" + good[20:len(good)-1], noon, ErrUnknownKey, "the decoder would skip it"},
		"other spelling":            {good[:len(good)-1] + string(alias), noon, ErrUnknownKey, "left-over bits would make a second id with another secret"},
		"padding":                   {good[:len(good)-1] + "=", noon, ErrUnknownKey, "not of the alphabet"},
		"unknown ring id":           {unknown, noon, ErrUnknownKey, "a ring key that was dropped"},
		"foreign ring":              {foreign, noon, ErrUnknownKey, "same id, another secret"},
		"other format":              {forged(func(b []byte) { b[0]++ }), noon, ErrUnknownKey, "unknown format"},
		"ring id changed":           {forged(func(b []byte) { b[1] = 7 }), noon, ErrUnknownKey, "signed by the other key"},
		"expiry moved":              {forged(func(b []byte) { b[expiryAt]++ }), noon, ErrUnknownKey, "covered by the MAC"},
		"permission added":          {forged(func(b []byte) { b[permissionAt] ^= 3 }), noon, ErrUnknownKey, "covered by the MAC"},
		"bucket changed":            {forged(func(b []byte) { b[bucketAt]++ }), noon, ErrUnknownKey, "covered by the MAC"},
		"subject changed":           {forged(func(b []byte) { b[subjectAt]++ }), noon, ErrUnknownKey, "would escape revocation"},
		"nonce changed":             {forged(func(b []byte) { b[nonceAt]++ }), noon, ErrUnknownKey, "covered by the MAC"},
		"MAC changed":               {forged(func(b []byte) { b[keySize-1]++ }), noon, ErrUnknownKey, "the MAC itself"},
		"MAC cleared":               {forged(func(b []byte) { clear(b[macAt:]) }), noon, ErrUnknownKey, "no zero MAC"},
		"a second before it ends":   {good, noon.Add(30*time.Minute - time.Second), nil, "lives to the end"},
		"a nanosecond before":       {good, noon.Add(30*time.Minute - 1), nil, "lives to the end"},
		"at its end":                {good, noon.Add(30 * time.Minute), ErrExpired, "no leeway"},
		"long expired":              {good, noon.Add(24 * time.Hour), ErrExpired, "SDKs refresh on ExpiredToken only"},
		"forged and expired":        {forged(func(b []byte) { b[keySize-1]++ }), noon.Add(time.Hour), ErrUnknownKey, "expiry is told of genuine keys only"},
		"expired, unknown ring key": {unknown, noon.Add(time.Hour), ErrUnknownKey, "cannot be told genuine"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			claims, secret, err := ring.Verify(c.id, c.now)
			if c.want == nil {
				require.NoError(t, err, c.reason)
				return
			}
			require.ErrorIs(t, err, c.want, c.reason)
			assert.Zero(t, claims)
			assert.Empty(t, secret)
		})
	}
}

func TestEveryCharacterOfAKeyCounts(t *testing.T) {
	ring := Ring{Keys: []RingKey{ringKey(1, 'a')}}
	good := issued(t, ring.Keys[0], grant()).AccessKeyID
	for i := range good {
		for _, c := range []byte("A7=a") {
			if good[i] == c {
				continue
			}
			_, _, err := ring.Verify(good[:i]+string(c)+good[i+1:], noon)
			require.ErrorIs(t, err, ErrUnknownKey, "character %d replaced by %c", i, c)
		}
	}
}

func TestVerifyTokenRefuses(t *testing.T) {
	ring := Ring{Keys: []RingKey{ringKey(1, 'a')}}
	key := issued(t, ring.Keys[0], grant())
	other, err := Issue(ring.Keys[0], Grant{Bucket: "d8-other-x-abcdefghijkl", Permission: Read, Subject: "s", Expires: noon.Add(time.Hour)}, [8]byte{9})
	require.NoError(t, err)
	body, sum, _ := strings.Cut(key.SessionToken, ".")
	cases := map[string]struct{ token, id, reason string }{
		"empty":              {"", key.AccessKeyID, "whoever sends none must not ask"},
		"another key's":      {other.SessionToken, key.AccessKeyID, "would show another bucket"},
		"for another key":    {key.SessionToken, other.AccessKeyID, "would show another bucket"},
		"unknown key":        {key.SessionToken, "AKIAIOSFODNN7EXAMPLE", "no ring key to check it with"},
		"no MAC":             {body, key.AccessKeyID, "unsigned"},
		"empty MAC":          {body + ".", key.AccessKeyID, "unsigned"},
		"another MAC":        {body + "." + strings.Repeat("A", len(sum)), key.AccessKeyID, "forged"},
		"claims changed":     {body[:len(body)-2] + "AA." + sum, key.AccessKeyID, "forged"},
		"too long":           {strings.Repeat("A", 1<<20), key.AccessKeyID, "cheap to refuse"},
		"the key's own text": {key.AccessKeyID, key.AccessKeyID, "not a token"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ring.VerifyToken(c.token, c.id)
			require.ErrorIs(t, err, ErrInvalidToken, c.reason)
		})
	}
}

// A key of one bucket never opens another one, whatever the names are.
func TestKeysOfOneBucketNeverVerifyAsAnother(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	ring := Ring{Keys: []RingKey{ringKey(1, 'a'), ringKey(2, 'b'), ringKey(255, 'c')}}
	name := func() string {
		return fmt.Sprintf("d8-ns%d-b%d-%012x", random.IntN(3), random.IntN(3), random.Uint64N(1<<20))
	}
	for range 2000 {
		mine, theirs := name(), name()
		g := Grant{Bucket: mine, Permission: Permission(1 + random.IntN(3)), Subject: name(), Expires: noon.Add(time.Minute)}
		var nonce [8]byte
		nonce[0] = byte(random.IntN(256))
		key, err := Issue(ring.Keys[random.IntN(3)], g, nonce)
		require.NoError(t, err)
		claims, _, err := ring.Verify(key.AccessKeyID, noon)
		require.NoError(t, err)
		require.Equal(t, g.Permission, claims.Permission)

		_, err = Decide(claims, Request{Method: "HEAD", Bucket: mine})
		require.NoError(t, err)
		_, err = Decide(claims, Request{Method: "HEAD", Bucket: theirs})
		if theirs != mine {
			require.ErrorIs(t, err, ErrDenied)
		}
	}
}

// What is derived is a contract between the hooks, the controller and the gateways: it must not drift.
func TestDerivedSecrets(t *testing.T) {
	id, secret := InternalKey([]byte("seed"))
	assert.Equal(t, "system-s3-internal", id)
	assert.Equal(t, "214a709a4b2109b5515897d760d8a346eb8c179e45982625ba0325a5ff6fd58a", secret)
	assert.Equal(t, "902ff8d374593c1f077af9d9664864b84902fd55cd19d26f70437120afbb35ed", RPCSecret([]byte("secret"), 1))
	assert.NotEqual(t, RPCSecret([]byte("secret"), 1), RPCSecret([]byte("secret"), 2))
	assert.NotEqual(t, BucketTag("x"), SubjectTag("x"), "tags of different kinds must not meet")
}

func TestTokenIsReadable(t *testing.T) {
	key := issued(t, ringKey(1, 'a'), grant())
	data, err := keyJSON(key.SessionToken)
	require.NoError(t, err)
	var claims map[string]any
	require.NoError(t, json.Unmarshal(data, &claims))
	assert.Equal(t, "d8-demo-logs-abcdefghijkl", claims["bucket"])
	assert.Equal(t, "2026-11-30T12:30:00Z", claims["expires"])
}

func TestKeyName(t *testing.T) {
	grant := Grant{Bucket: "b", Permission: Read, Subject: "s", Expires: time.Unix(1_900_000_000, 0)}
	ring := RingKey{ID: 1, Secret: bytes.Repeat([]byte{1}, minRingSecret)}
	key, err := Issue(ring, grant, [8]byte{0xab, 1, 2, 3, 4, 5, 6, 0xcd})
	require.NoError(t, err)
	require.Equal(t, "ab010203040506cd", KeyName(key.AccessKeyID))
	for _, other := range []string{"", "AKIAIOSFODNN7EXAMPLE", key.AccessKeyID[1:], key.SecretAccessKey} {
		require.Empty(t, KeyName(other))
	}
}
