package load

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/smithy-go"
)

// Phase is what clients saw in a part of the time.
type Phase struct {
	Name     string
	Requests int // calls of the SDK
	Failed   int // of them after the SDK had tried them again as it does by default
	Retried  int // attempts beyond the first
	// Stall is the longest time in which a worker got no good answer.
	Stall time.Duration
	// Stale is how often a listing did not yet show what a read showed.
	Stale int
	// Errors that were seen in the end, how often each.
	Errors map[string]int
}

// Told is the errors in one line.
func (p Phase) Told() string {
	told := make([]string, 0, len(p.Errors))
	for _, what := range slices.Sorted(maps.Keys(p.Errors)) {
		told = append(told, fmt.Sprintf("%d x %s", p.Errors[what], what))
	}
	return strings.Join(told, ", ")
}

// plus adds what a worker saw.
func (p *Phase) plus(operation string, err error) {
	p.Requests++
	if err == nil {
		return
	}
	p.Failed++
	if p.Errors == nil {
		p.Errors = map[string]int{}
	}
	p.Errors[operation+" "+Code(err)]++
}

// Code is the error code that a client sees; without one the innermost cause.
func Code(err error) string {
	var coded smithy.APIError
	if errors.As(err, &coded) {
		return coded.ErrorCode()
	}
	for err != nil {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
	return ""
}
