package verdict

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	someReasons  = "# for people\nlock\tObject Lock\tnot offered\nfar\t.\tnot there\n"
	someExpected = "# for people\nFar_*\tfar\n\nPutLock\tlock\nGetLock\tlock\n"
)

func TestARunIsJudgedByTheTable(t *testing.T) {
	locked := errors.New("api error: Bucket is missing Object Lock Configuration")
	cases := map[string]struct {
		reason  string
		results map[string]error
		names   []string
		whole   bool
		passed  int
		wrong   []string
	}{
		"as expected": {
			"two passed, two did not for their reason, one was left out",
			map[string]error{"A": nil, "B": nil, "PutLock": locked, "GetLock": locked},
			[]string{"A", "B", "PutLock", "GetLock", "Far_1"},
			true, 2, nil,
		},
		"a failure": {
			"not in the table",
			map[string]error{"A": errors.New("500"), "PutLock": locked, "GetLock": locked},
			[]string{"A", "PutLock", "GetLock", "Far_1"},
			true, 0,
			[]string{"A: failed: 500"},
		},
		"another failure": {
			"a line hides no other failure",
			map[string]error{"PutLock": errors.New("500"), "GetLock": locked},
			[]string{"PutLock", "GetLock", "Far_1"},
			true, 0,
			[]string{`PutLock: failed, but not for the reason "lock": 500`},
		},
		"it passes": {
			"the line has to go",
			map[string]error{"PutLock": nil, "GetLock": locked},
			[]string{"PutLock", "GetLock", "Far_1"},
			true, 0,
			[]string{"PutLock: stale line: it passes"},
		},
		"it is gone": {
			"the lines have to go",
			map[string]error{"PutLock": locked},
			[]string{"PutLock"},
			true, 0,
			[]string{"Far_*: stale line: it fits no test of the suite", "GetLock: stale line: no such test was run"},
		},
		"some only": {"the others were not asked for", map[string]error{"A": nil}, []string{"A", "PutLock"}, false, 1, nil},
	}
	table, err := Parse(someReasons, someExpected)
	require.NoError(t, err)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := table.Judge(c.results, c.names, c.whole)
			require.Equal(t, c.passed, j.Passed, c.reason)
			require.Equal(t, c.wrong, j.Wrong, c.reason)
		})
	}
}

func TestTheSummaryCountsByReason(t *testing.T) {
	table, err := Parse(someReasons, someExpected)
	require.NoError(t, err)
	locked := errors.New("Object Lock")
	var out strings.Builder
	table.Judge(map[string]error{"A": nil, "PutLock": locked, "GetLock": locked}, []string{"A", "Far_1", "Far_2"}, true).Print(&out, table)
	require.Equal(t, `    1 passed
    2 did not pass, as expected:
          2 lock           not offered
    2 not run, since what they ask for is not there:
          2 far            not there
    0 wrong
`, out.String())
}

func TestAWrongTableIsRefused(t *testing.T) {
	for name, files := range map[string][2]string{
		"no such reason":   {someReasons, "A\tnone\n"},
		"given twice":      {someReasons, "A\tlock\nA\tfar\n"},
		"not two fields":   {someReasons, "A lock\n"},
		"not three fields": {"lock\tx\n", ""},
		"no expression":    {"lock\t(\tx\n", ""},
	} {
		_, err := Parse(files[0], files[1])
		require.ErrorIs(t, err, errTable, name)
	}
}

// A test that passes by chance is wrong neither when it does nor when it does not, and hides no other failure.
func TestWhatPassesByChance(t *testing.T) {
	table, err := Parse("luck\torder\tin any order\tby chance\n", "List\tluck\n")
	require.NoError(t, err)
	for said, wrong := range map[error][]string{
		nil:                         nil,
		errors.New("another order"): nil,
		errors.New("500"):           {`List: failed, but not for the reason "luck": 500`},
	} {
		require.Equal(t, wrong, table.Judge(map[string]error{"List": said}, []string{"List"}, true).Wrong)
	}
	_, err = Parse("luck\torder\tin any order\tsometimes\n", "List\tluck\n")
	require.ErrorIs(t, err, errTable)
}
