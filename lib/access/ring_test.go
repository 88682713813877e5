package access

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keyJSON is the claims of a token, as anybody can read them.
func keyJSON(token string) ([]byte, error) {
	body, _, _ := strings.Cut(token, ".")
	return base64.RawURLEncoding.DecodeString(body)
}

func aged(id uint8, age time.Duration) RingKey {
	return RingKey{ID: id, Secret: bytes.Repeat([]byte{id}, 32), CreatedAt: noon.Add(-age)}
}

func TestRingIsReadAsWritten(t *testing.T) {
	ring := Ring{Keys: []RingKey{aged(3, time.Hour), aged(4, time.Minute)}}
	data, err := ring.Marshal()
	require.NoError(t, err)
	parsed, err := ParseRing(data)
	require.NoError(t, err)
	assert.Equal(t, ring, parsed)
	assert.JSONEq(t, `{"keys":[
		{"id":3,"secret":"`+base64.StdEncoding.EncodeToString(ring.Keys[0].Secret)+`","createdAt":"2026-11-30T11:00:00Z"},
		{"id":4,"secret":"`+base64.StdEncoding.EncodeToString(ring.Keys[1].Secret)+`","createdAt":"2026-11-30T11:59:00Z"}]}`, string(data))
}

func TestParseRingRefuses(t *testing.T) {
	const secret = "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="
	key := func(id, secret, at string) string {
		return `{"id":` + id + `,"secret":"` + secret + `","createdAt":"` + at + `"}`
	}
	const at, later = "2026-11-30T11:00:00Z", "2026-11-30T11:30:00Z"
	cases := map[string]struct{ data, reason string }{
		"nothing":          {"", "a Secret that is not mounted yet"},
		"not JSON":         {"{", "half a file"},
		"no keys":          {`{"keys":[]}`, "would refuse everybody"},
		"another document": {`{}`, "would refuse everybody"},
		"id missing":       {`{"keys":[` + key("0", secret, at) + `]}`, "0 is no id"},
		"id too large":     {`{"keys":[` + key("256", secret, at) + `]}`, "does not fit into a key"},
		"id twice":         {`{"keys":[` + key("1", secret, at) + `,` + key("1", secret, later) + `]}`, "which one would verify?"},
		"short secret":     {`{"keys":[` + key("1", "QUFB", at) + `]}`, "guessable"},
		"secret no base64": {`{"keys":[` + key("1", "***", at) + `]}`, "not a secret"},
		"no time":          {`{"keys":[{"id":1,"secret":"` + secret + `"}]}`, "its age decides"},
		"newest first":     {`{"keys":[` + key("1", secret, later) + `,` + key("2", secret, at) + `]}`, "would sign with the wrong one"},
		"too many":         {`{"keys":[` + strings.TrimSuffix(strings.Repeat(key("1", secret, at)+",", 17), ",") + `]}`, "rotation went wild"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseRing([]byte(c.data))
			require.Error(t, err, c.reason)
			assert.NotContains(t, err.Error(), secret, "errors end in logs")
		})
	}
}

func TestSigning(t *testing.T) {
	cases := map[string]struct {
		ring   Ring
		want   uint8
		reason string
	}{
		"one old":         {Ring{[]RingKey{aged(1, time.Hour)}}, 1, "the only one"},
		"one new":         {Ring{[]RingKey{aged(1, time.Second)}}, 1, "the first installation must not wait"},
		"new behind old":  {Ring{[]RingKey{aged(1, time.Hour), aged(2, 9*time.Minute)}}, 1, "gateways may not have read it"},
		"new grown up":    {Ring{[]RingKey{aged(1, time.Hour), aged(2, 10*time.Minute)}}, 2, "every gateway has it"},
		"clock went back": {Ring{[]RingKey{aged(1, -time.Minute), aged(2, -time.Minute)}}, 1, "the oldest is the best known"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			key, err := c.ring.Signing(noon)
			require.NoError(t, err)
			assert.Equal(t, c.want, key.ID, c.reason)
		})
	}
	_, err := Ring{}.Signing(noon)
	require.ErrorIs(t, err, ErrEmptyRing)
}

func TestRotate(t *testing.T) {
	fresh := bytes.Repeat([]byte{'n'}, 32)
	cases := map[string]struct {
		ring   Ring
		want   []uint8
		reason string
	}{
		"none":                 {Ring{}, []uint8{1}, "the first key"},
		"young":                {Ring{[]RingKey{aged(1, 23*time.Hour)}}, []uint8{1}, "a day is not over"},
		"due":                  {Ring{[]RingKey{aged(1, 24*time.Hour)}}, []uint8{1, 2}, "the old one still verifies"},
		"overlap":              {Ring{[]RingKey{aged(1, 30*time.Hour), aged(2, 12*time.Hour)}}, []uint8{1, 2}, "the longest key may still live"},
		"overlap over":         {Ring{[]RingKey{aged(1, 38*time.Hour), aged(2, 13*time.Hour)}}, []uint8{2}, "nothing it signed is alive"},
		"asleep for long":      {Ring{[]RingKey{aged(1, 300*time.Hour), aged(2, 200*time.Hour)}}, []uint8{2, 3}, "the last signer stays until its successor has grown up"},
		"ids wrap":             {Ring{[]RingKey{aged(255, 24*time.Hour)}}, []uint8{255, 1}, "0 is no id"},
		"made in the future":   {Ring{[]RingKey{aged(1, -48*time.Hour)}}, []uint8{1}, "a clock that went back adds nothing"},
		"old and in the dozen": {Ring{[]RingKey{aged(1, 90*time.Hour), aged(2, 60*time.Hour), aged(3, time.Hour)}}, []uint8{2, 3}, "only those whose successor signs"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := len(c.ring.Keys)
			rotated := c.ring.Rotate(noon, fresh)
			var ids []uint8
			for _, key := range rotated.Keys {
				ids = append(ids, key.ID)
			}
			assert.Equal(t, c.want, ids, c.reason)
			assert.Equal(t, c.ring.NeedsRotation(noon), len(rotated.Keys) != before || rotated.Keys[0].ID != c.ring.Keys[0].ID)
			assert.False(t, rotated.NeedsRotation(noon), "one pass is enough")
			_, err := rotated.Marshal()
			require.NoError(t, err)
			require.NoError(t, rotated.validate())
		})
	}
}

func TestIDsAreNeverTwiceInARing(t *testing.T) {
	assert.Equal(t, uint8(3), nextID([]RingKey{aged(1, 0), aged(2, 0), aged(255, 0)}[:2]))
	assert.Equal(t, uint8(3), nextID([]RingKey{aged(1, 0), aged(2, 0), aged(255, 0)}), "0 is none, 1 and 2 are taken")
}

// Whatever is issued at any moment verifies until its end, through every rotation between.
func TestRotationNeverCutsAKeyShort(t *testing.T) {
	ring := Ring{}
	type living struct {
		id  string
		end time.Time
	}
	var alive []living
	for step := range 24 * 8 {
		now := noon.Add(time.Duration(step) * 30 * time.Minute)
		ring = ring.Rotate(now, bytes.Repeat([]byte{byte(step)}, 32))
		signing, err := ring.Signing(now)
		require.NoError(t, err)
		g := grant()
		g.Expires = now.Add(MaxLifetime)
		key, err := Issue(signing, g, [8]byte{byte(step)})
		require.NoError(t, err)
		alive = append(alive, living{key.AccessKeyID, key.Expires})
		for _, k := range alive {
			_, _, err := ring.Verify(k.id, now)
			if now.Before(k.end) {
				require.NoError(t, err, "issued to live until %s, now %s", k.end, now)
			} else {
				require.Error(t, err)
			}
		}
		require.LessOrEqual(t, len(ring.Keys), 3)
	}
}
