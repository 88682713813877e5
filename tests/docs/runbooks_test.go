package docs

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	alertName = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)
	badReason = regexp.MustCompile("(?m)^\\| `\\w+` \\| `(\\w+)` \\| False \\|")
)

// unexplained are the alerts and the reasons of trouble that a page of runbooks does not speak of.
func unexplained(t *testing.T, p page) []string {
	t.Helper()
	var missing []string
	for from, name := range map[string]*regexp.Regexp{
		text(t, root+"/monitoring/prometheus-rules", "*.yaml"): alertName,
		text(t, root+"/docs", "DATA_PLANE.md"):                 badReason,
	} {
		found := name.FindAllStringSubmatch(from, -1)
		require.NotEmpty(t, found, name)
		for _, m := range found {
			if !slices.Contains(p.inline, m[1]) {
				missing = append(missing, m[1])
			}
		}
	}
	return missing
}

func TestTroubleHasItsRunbook(t *testing.T) {
	for _, name := range []string{"RUNBOOKS.md", "RUNBOOKS.ru.md"} {
		assert.Empty(t, unexplained(t, read(t, root+"/docs/"+name)), name)
	}
	require.NotEmpty(t, unexplained(t, read(t, badPages+"/twins.md")))
}
