package monitoring

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// planned are the reasons of conditions that are False while the module does what it was asked for, or nothing at all.
var planned = map[string]bool{
	"StorageReady/WaitingForFirstBucket": true,
	"PlacementReady/Relocating":          true,
	"MigrationReady/Copying":             true,
	"MigrationReady/Verifying":           true,
	"MigrationReady/Switching":           true,
}

var reasonRow = regexp.MustCompile("^\\| `(\\w+)` \\| `(\\w+)` \\| (True|False) \\|")

// Each reason that people have to do something about raises an alert that is named after it.
func TestEachReasonThatNeedsSomebodyHasItsAlert(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/DATA_PLANE.md")
	require.NoError(t, err)
	found := 0
	for line := range strings.Lines(string(page)) {
		row := reasonRow.FindStringSubmatch(line)
		if row == nil || row[3] == "True" || planned[row[1]+"/"+row[2]] {
			continue
		}
		found++
		name := "D8SystemS3" + row[2]
		if row[2] == "Blocked" { // alone it would not say what is blocked
			name = "D8SystemS3MigrationBlocked"
		}
		rule, ok := alerts(t)[name]
		require.True(t, ok, "%s=False, reason %s: nobody is told; write %s", row[1], row[2], name)
		require.Contains(t, rule.Expr, `type="`+row[1]+`"`, name)
		require.Contains(t, rule.Expr, `reason="`+row[2]+`"`, name)
	}
	require.Greater(t, found, 5, "the page has another form")
}
