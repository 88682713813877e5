package estate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhouse/system-s3/images/controller/internal/estate"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	justNow, longAgo := now.Add(-estate.Grace/2), now.Add(-estate.Grace)
	cases := map[string]struct {
		reason string
		held   map[types.UID]bool
		stored string // what the entry says of the store
		taken  bool
		gone   *time.Time
		want   estate.Verdict
	}{
		"held again":           {"the finalizer does the rest", map[types.UID]bool{"u": true}, "s", false, nil, estate.Drop},
		"held, once missed":    {"it was never gone", map[types.UID]bool{"u": true}, "s", false, &longAgo, estate.Drop},
		"not held yet":         {"it may be deleted before it is", map[types.UID]bool{"u": false}, "s", false, nil, estate.Keep},
		"back, not held yet":   {"what was seen before was wrong", map[types.UID]bool{"u": false}, "s", false, &longAgo, estate.Revive},
		"gone":                 {"once is not enough", nil, "s", false, nil, estate.Mark},
		"gone a moment":        {"somebody may be looking into it", nil, "s", false, &justNow, estate.Keep},
		"gone for good":        {"A4: the data goes with the SystemBucket", nil, "s", false, &longAgo, estate.Delete},
		"made again by name":   {"another UID is another SystemBucket", map[types.UID]bool{"v": true}, "s", false, &longAgo, estate.Delete},
		"bucket taken over":    {"a restored SystemBucket serves it", map[types.UID]bool{"v": true}, "s", true, &longAgo, estate.Drop},
		"another store":        {"the id proves nothing there", nil, "other", false, &longAgo, estate.Drop},
		"store was not known":  {"no proof", nil, "", false, &longAgo, estate.Drop},
		"another store, alive": {"it goes on in the new store", map[types.UID]bool{"u": true}, "other", false, nil, estate.Drop},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entry := estate.Entry{UID: "u", Namespace: "d8-x", Name: "logs", Bucket: "b", Store: c.stored, Gone: c.gone}
			got, why := estate.Judge(entry, estate.World{Held: c.held, Recorded: map[string]bool{"b": c.taken}, Store: "s", Now: now})
			require.Equal(t, c.want, got, c.reason)
			require.NotEmpty(t, why)
		})
	}
}
