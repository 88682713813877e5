package bucket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/deckhouse/system-s3/lib/garage"
)

func TestOrphans(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	old, fresh := now.Add(-2*time.Hour).Format(time.RFC3339Nano), now.Add(-time.Minute).Format(time.RFC3339Nano)
	cases := map[string]struct {
		reason   string
		bucket   garage.Bucket
		recorded bool
		want     bool
	}{
		"orphan":       {"a crash left it", garage.Bucket{Created: old}, false, true},
		"recorded":     {"its SystemBucket is about to name it", garage.Bucket{Created: old}, true, false},
		"fresh":        {"a pass may be about to record it", garage.Bucket{Created: fresh}, false, false},
		"named":        {"somebody uses it by name", garage.Bucket{Created: old, GlobalAliases: []string{"x"}}, false, false},
		"granted":      {"somebody uses it by id", garage.Bucket{Created: old, Keys: []garage.BucketKey{{AccessKeyID: "k"}}}, false, false},
		"with objects": {"data is never deleted here", garage.Bucket{Created: old, Objects: 1}, false, false},
		"ageless":      {"an age that cannot be read proves nothing", garage.Bucket{Created: "?"}, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := orphans(map[string]garage.Bucket{"id": c.bucket}, map[string]bool{"id": c.recorded}, now)
			assert.Equal(t, c.want, len(got) == 1, c.reason)
		})
	}
}

func TestQuotaVerdict(t *testing.T) {
	t.Parallel()
	limit := func(n int64) *int64 { return &n }
	cases := map[string]struct {
		reason string
		bucket garage.Bucket
		want   string
	}{
		"empty":      {"nothing is used", garage.Bucket{Quotas: garage.Quotas{MaxSize: limit(1000)}}, "WithinQuota"},
		"no limit":   {"nothing can be reached", garage.Bucket{Bytes: 1 << 60, Objects: 1 << 60}, "WithinQuota"},
		"79 percent": {"below the line", garage.Bucket{Bytes: 799, Quotas: garage.Quotas{MaxSize: limit(1000)}}, "WithinQuota"},
		"80 percent": {"on the line", garage.Bucket{Bytes: 800, Quotas: garage.Quotas{MaxSize: limit(1000)}}, "NearQuota"},
		"full":       {"nothing fits", garage.Bucket{Bytes: 1000, Quotas: garage.Quotas{MaxSize: limit(1000)}}, "QuotaReached"},
		"almost full": {
			"what is left is less than most objects",
			garage.Bucket{Bytes: 990, Quotas: garage.Quotas{MaxSize: limit(1000)}},
			"QuotaReached",
		},
		"objects near":  {"the other quota", garage.Bucket{Objects: 9, Quotas: garage.Quotas{MaxObjects: limit(10)}}, "NearQuota"},
		"objects full":  {"the other quota", garage.Bucket{Objects: 10, Quotas: garage.Quotas{MaxObjects: limit(10)}}, "QuotaReached"},
		"over":          {"the quota was lowered", garage.Bucket{Bytes: 5000, Quotas: garage.Quotas{MaxSize: limit(1000)}}, "QuotaReached"},
		"huge":          {"no overflow", garage.Bucket{Bytes: 1 << 60, Quotas: garage.Quotas{MaxSize: limit(1 << 62)}}, "WithinQuota"},
		"limit of zero": {"a bucket that is being deleted", garage.Bucket{Quotas: closed()}, "QuotaReached"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, quota(c.bucket).Reason, c.reason)
		})
	}
}

func TestUseIsReadable(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{
		0: "0", 1: "1", 10240: "10Ki", 10241: "11Ki", 150000: "147Ki", 10 << 20: "10Mi", 10<<20 + 1: "11Mi",
		5 << 30: "5Gi", 5<<30 + 1: "5121Mi", 50<<30 + 1: "51Gi", 5 << 40: "5Ti",
	} {
		assert.Equal(t, want, use(bytes).String(), "%d bytes", bytes)
	}
}
