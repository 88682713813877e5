// Package table holds what is expected not to pass and why.
package table

import (
	_ "embed"

	"github.com/deckhouse/system-s3/tests/suite/verdict"
)

//go:embed reasons.tsv
var reasons string

//go:embed expected.tsv
var expected string

// Load reads the table.
func Load() (verdict.Table, error) {
	return verdict.Parse(reasons, expected) //nolint:wrapcheck // it says what is wrong
}
