package verdict

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Judgement is what came of a run.
type Judgement struct {
	Passed   int
	Expected map[string]int // tests that did not pass, by reason
	Left     map[string]int // tests that were not run, by reason
	Wrong    []string       // one line each
}

// Judge compares what each test said (nothing, if it passed) with the table. The names are of all tests there are, run
// or not; whole tells that every test that is not left out was run, so that lines for others are stale.
func (t Table) Judge(results map[string]error, names []string, whole bool) Judgement {
	j := Judgement{Expected: map[string]int{}, Left: map[string]int{}}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		j.one(t, name, results[name])
	}
	used := map[string]bool{}
	for _, name := range names {
		if left, out := t.LeftOut(name); out {
			j.Left[left.Reason]++
			used[left.Pattern] = true
		}
	}
	if !whole {
		return j
	}
	for _, left := range t.Left {
		if !used[left.Pattern] {
			j.Wrong = append(j.Wrong, left.Pattern+": stale line: it fits no test of the suite")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Lines)) {
		if _, run := results[name]; !run {
			j.Wrong = append(j.Wrong, name+": stale line: no such test was run")
		}
	}
	return j
}

func (j *Judgement) one(t Table, name string, said error) {
	id, listed := t.Lines[name]
	switch {
	case said == nil && (!listed || t.Reasons[id].Chance):
		j.Passed++
	case said == nil:
		j.Wrong = append(j.Wrong, name+": stale line: it passes")
	case !listed:
		j.Wrong = append(j.Wrong, fmt.Sprintf("%s: failed: %v", name, said))
	case !t.Reasons[id].Seen.MatchString(said.Error()):
		j.Wrong = append(j.Wrong, fmt.Sprintf("%s: failed, but not for the reason %q: %v", name, id, said))
	default:
		j.Expected[id]++
	}
}

// Print writes the summary.
func (j Judgement) Print(w io.Writer, t Table) {
	var out strings.Builder
	expected, left := 0, 0
	for _, n := range j.Expected {
		expected += n
	}
	for _, n := range j.Left {
		left += n
	}
	fmt.Fprintf(&out, "%5d passed\n%5d did not pass, as expected:\n", j.Passed, expected)
	table(&out, j.Expected, t)
	fmt.Fprintf(&out, "%5d not run, since what they ask for is not there:\n", left)
	table(&out, j.Left, t)
	fmt.Fprintf(&out, "%5d wrong\n", len(j.Wrong))
	for _, line := range j.Wrong {
		fmt.Fprintf(&out, "      %s\n", strings.ReplaceAll(line, "\n", " "))
	}
	_, _ = io.WriteString(w, out.String()) // there is nobody else to tell
}

func table(out *strings.Builder, counts map[string]int, t Table) {
	ids := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	for _, id := range ids {
		fmt.Fprintf(out, "      %5d %-14s %s\n", counts[id], id, t.Reasons[id].Text)
	}
}
