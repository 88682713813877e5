// Package scenario is what can happen to a store, one file each. A scenario hurts it and puts right what it did; whether
// the store gets well again, and what its clients saw, is for others to judge.
package scenario

import (
	"context"
	"slices"
	"strings"

	"github.com/deckhouse/system-s3/tests/tour/ground"
)

// Scenario is one thing that happens to a store.
type Scenario struct {
	// Name is how it is called on the command line and in the table.
	Name string
	// About says what happens, in a few words.
	About string
	// Outage says why clients may see any error meanwhile; empty when they may not.
	Outage string
	// Refusals are the errors that the contract promises meanwhile, as "Operation Code".
	Refusals []string
	// Play makes it happen and returns when it has put right what it did.
	Play func(context.Context, *ground.Ground) error
}

// All scenarios.
func All() []Scenario {
	return slices.Concat(kills(), power(), []Scenario{restart(), partition(), full(), roll(), steps(), wipe(), drain()})
}

// Unexpected are those of the errors that clients must not have seen, in order.
func (s Scenario) Unexpected(errors map[string]int) []string {
	var unexpected []string
	for what := range errors {
		if s.Outage == "" && !slices.Contains(s.Refusals, what) {
			unexpected = append(unexpected, what)
		}
	}
	slices.Sort(unexpected)
	return unexpected
}

// Choose returns the scenarios with these names, separated by commas; all of them without a name.
func Choose(list string) (chosen []Scenario, unknown []string) {
	if list == "" {
		return All(), nil
	}
	for name := range strings.SplitSeq(list, ",") {
		found := slices.IndexFunc(All(), func(s Scenario) bool { return s.Name == name })
		if found < 0 {
			unknown = append(unknown, name)
			continue
		}
		chosen = append(chosen, All()[found])
	}
	return chosen, unknown
}
