package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fact is a number that a page tells and the code decides. When the code changes, the page has to, and this table.
type fact struct{ file, code, page, says string }

var facts = []fact{
	{"lib/access/place.go", `MaxKey = 471`, "FAQ", "471 bytes"},
	{"lib/plan/volumes.go", `metadataBytes += 4 \* gibi`, "FAQ", "+ 10 % + 4 GiB"},
	{"lib/plan/volumes.go", `smallestBytes += 10 \* gibi`, "FAQ", "at least 10 GiB"},
	{"lib/plan/volumes.go", `stepBytes += 5 \* gibi`, "FAQ", "in steps of 5 GiB"},
	{"images/gateway/internal/volume/volume.go", `leastReserve = 256 << 20\n\tmostReserve += 4 << 30`, "FAQ", "256 MiB to 4 GiB"},
	{"images/controller/main.go", `defaultLifetime += 30 \* time.Minute`, "FAQ", "30 minutes"},
	{"lib/sts/limits.go", `Source: +Rate\{PerSecond: 50,`, "FAQ", "50 requests a second from an address"},
	{"lib/sts/limits.go", `Subject: +Rate\{PerSecond: 20,`, "FAQ", "20 from a ServiceAccount"},
	{"lib/sts/limits.go", `Request: +4500 \* time.Millisecond`, "SECURITY", "4.5 seconds"},
	{"lib/sts/request.go", `maxBody += 64 << 10`, "SECURITY", "64 KiB"},
	{"lib/access/ring.go", `signingDelay = 10 \* time.Minute`, "SECURITY", "ten minutes old"},
	{"lib/access/ring.go", `retention = MaxLifetime \+ time.Hour`, "SECURITY", "13 hours after its successor"},
	{"lib/access/role.go", `MaxLifetime = 12 \* time.Hour`, "FAQ", "900 to 43200"},
	{"lib/access/key.go", `format 1 \| ring id 1 \| expiry 4 .*\| permission 1 \| bucket tag 16 \| subject tag 16 \|\n//\tnonce 8 \| MAC 16`, "SECURITY", "63 bytes"},
	{"lib/access/key.go", `system-s3/v1/access-key-id\\x00`, "SECURITY", `system-s3/v1/access-key-id\0`},
	{"lib/access/key.go", `system-s3/v1/secret-access-key\\x00`, "SECURITY", `system-s3/v1/secret-access-key\0`},
	{"lib/access/key.go", `system-s3/v1/session-token\\x00`, "SECURITY", `system-s3/v1/session-token\0`},
	{"lib/sigv4/authorization.go", `skew = 15 \* time.Minute`, "SECURITY", "15 minutes either way"},
}

func TestNumbersAreThoseOfTheCode(t *testing.T) {
	for _, f := range facts {
		source, err := os.ReadFile(root + "/" + f.file)
		require.NoError(t, err)
		assert.True(t, regexp.MustCompile(f.code).Match(source), "%s decides otherwise than docs/%s.md says: %s", f.file, f.page, f.says)
		page := strings.Join(strings.Fields(text(t, root+"/docs", f.page+".md")), " ")
		assert.True(t, strings.Contains(page, f.says), "docs/%s.md does not say any more: %s", f.page, f.says)
	}
}
