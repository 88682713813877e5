// Package verdict judges a run of the peer's suite by the table of what is expected not to pass.
package verdict

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Reason is why a test does not pass and why that is right for this product.
type Reason struct {
	ID   string
	Text string
	// Seen must match what the test says, so that a line of the table cannot hide another failure.
	Seen *regexp.Regexp
	// Chance: such a test passes now and then.
	Chance bool
}

// Table is what is expected not to pass, by name, and what is not run at all, by pattern.
type Table struct {
	Reasons map[string]Reason
	Lines   map[string]string // test -> reason
	Left    []Left
}

// Left is tests that are not run: what they ask for is not there at all.
type Left struct{ Pattern, Reason string }

const byChance = "by chance"

var errTable = errors.New("the table is wrong")

// Parse reads the two files. Each line of reasons is `id<TAB>regular expression<TAB>text`, with `<TAB>by chance` when
// such tests pass now and then; each line of expected is `test<TAB>id`; a test with an asterisk is a pattern of tests that are not run. Lines with # are for people.
func Parse(reasons, expected string) (Table, error) {
	t := Table{Reasons: map[string]Reason{}, Lines: map[string]string{}}
	var errs []error
	for _, fields := range rows(reasons) {
		chance := len(fields) == 4 && fields[3] == byChance
		if len(fields) != 3 && !chance { //nolint:mnd // id, expression, text
			errs = append(errs, fmt.Errorf("reason %q: not three fields, nor a fourth that is %q", fields[0], byChance))
			continue
		}
		seen, err := regexp.Compile(fields[1])
		if err != nil {
			errs = append(errs, fmt.Errorf("reason %q: %w", fields[0], err))
		}
		t.Reasons[fields[0]] = Reason{ID: fields[0], Seen: seen, Text: fields[2], Chance: chance}
	}
	for _, fields := range rows(expected) {
		errs = append(errs, t.add(fields))
	}
	if err := errors.Join(errs...); err != nil {
		return t, fmt.Errorf("%w: %w", errTable, err)
	}
	return t, nil
}

func (t *Table) add(fields []string) error {
	name := fields[0]
	if len(fields) != 2 { //nolint:mnd // test, reason
		return fmt.Errorf("line %q: not two fields", name)
	}
	reason := fields[1]
	if _, known := t.Reasons[reason]; !known {
		return fmt.Errorf("line %q: no such reason: %q", name, reason)
	}
	if strings.Contains(name, "*") {
		t.Left = append(t.Left, Left{Pattern: name, Reason: reason})
		return nil
	}
	if _, twice := t.Lines[name]; twice {
		return fmt.Errorf("line %q: given twice", name)
	}
	t.Lines[name] = reason
	return nil
}

func rows(file string) [][]string {
	var found [][]string
	for line := range strings.Lines(file) {
		line = strings.TrimRight(line, "\n")
		if line != "" && !strings.HasPrefix(line, "#") {
			found = append(found, strings.Split(line, "\t"))
		}
	}
	return found
}

// LeftOut is the reason why a test is not run, or nothing.
func (t Table) LeftOut(test string) (Left, bool) {
	for _, left := range t.Left {
		if match, err := path.Match(left.Pattern, test); err == nil && match {
			return left, true
		}
	}
	return Left{}, false
}
