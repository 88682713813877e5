// Package matrix is what came of every client and operation.
package matrix

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/deckhouse/system-s3/tests/clients/roster"
)

// ErrFailed means that a cell is not what it should be.
var ErrFailed = errors.New("the matrix has failures")

// Row is a client with what it wrote.
type Row struct {
	Client roster.Client
	Cells  map[string]Cell
	// Trouble is why the client did not come to its end, if so.
	Trouble error
}

// Cell is what came of an operation.
type Cell struct {
	OK   bool
	Text string
}

// Parse finds the lines in what a client wrote that tell about operations.
func Parse(log string) map[string]Cell {
	const fields = 3
	cells := map[string]Cell{}
	for line := range strings.Lines(log) {
		words := strings.SplitN(strings.TrimRight(line, "\n"), "\t", fields)
		if len(words) == fields && (words[1] == "ok" || words[1] == "failed") {
			cells[words[0]] = Cell{OK: words[1] == "ok", Text: words[2]}
		}
	}
	return cells
}

// verdict of an operation: the word for the table, and a sentence when there is something to say.
func (r Row) verdict(operation string) (word, why string, fine bool) {
	cell, told := r.Cells[operation]
	reason, impossible := r.Client.Cannot[operation]
	switch {
	case impossible && !told:
		return "-", reason, true
	case impossible && cell.OK:
		return "OK?", "it works although it should be impossible: " + reason, false
	case !told:
		return "NONE", "the client said nothing", false
	case !cell.OK:
		return "FAIL", cell.Text, false
	default:
		return "ok", "", true
	}
}

// Print writes the table and below it a sentence for everything that is not ok. The error is ErrFailed when one of these
// was not expected.
func Print(out io.Writer, rows []Row) error {
	var failed error
	var sentences []string
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "client\t"+strings.Join(roster.Operations, "\t")) //nolint:errcheck // told by Flush
	for _, row := range rows {
		words := []string{row.Client.Title}
		for _, operation := range roster.Operations {
			word, why, fine := row.verdict(operation)
			words = append(words, word)
			if !fine {
				failed = ErrFailed
			}
			if why != "" {
				sentences = append(sentences, fmt.Sprintf("%s, %s: %s", row.Client.Name, operation, why))
			}
		}
		if row.Trouble != nil {
			failed = ErrFailed
			sentences = append(sentences, fmt.Sprintf("%s: %v", row.Client.Name, row.Trouble))
		}
		fmt.Fprintln(table, strings.Join(words, "\t")) //nolint:errcheck // told by Flush
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the matrix: %w", err)
	}
	fmt.Fprintln(out, "\n"+strings.Join(slices.Compact(sentences), "\n")) //nolint:errcheck // as the table
	return failed
}

// Example is what came of a program of the page Access.
type Example struct {
	Language string
	Trouble  error
}

// PrintExamples writes a line for each example. The error is ErrFailed when one had trouble.
func PrintExamples(out io.Writer, examples []Example) error {
	var failed error
	for _, example := range examples {
		verdict := "ok"
		if example.Trouble != nil {
			verdict, failed = "FAIL: "+example.Trouble.Error(), ErrFailed
		}
		fmt.Fprintf(out, "the page's example in %s: %s\n", example.Language, verdict) //nolint:errcheck // as the matrix
	}
	return failed
}
