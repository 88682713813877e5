package migration

import (
	"fmt"
	"strings"
	"time"

	"github.com/deckhouse/system-s3/lib/plan"
)

// Figures are how far a phase is, as counted.
type Figures struct {
	Objects, Copied    int64
	Bytes, CopiedBytes int64
	For                time.Duration // how long it has taken so far
}

const (
	percent = 100
	minute  = 60 // seconds
	// leastTime is how long a phase must have taken before its speed says anything.
	leastTime = 10 * time.Second
	all       = 100
)

// Put puts the figures into the state, coarse, since each change of the state wakes hooks.
func (f Figures) Put(s *plan.MigrationState) {
	s.Objects, s.Bytes = f.Objects, f.Bytes
	s.Copied, s.CopiedBytes = coarse(f.Copied, f.Objects), coarse(f.CopiedBytes, f.Bytes)
	s.BytesPerSecond, s.SecondsLeft = 0, 0
	if f.For < leastTime {
		return
	}
	seconds := int64(f.For / time.Second)
	s.BytesPerSecond = halves(f.CopiedBytes / seconds)
	if left := f.left(seconds); left > 0 {
		s.SecondsLeft = halves((left+minute-1)/minute) * minute
	}
}

// left is how many seconds are left at the speed so far, of what takes longer: objects or bytes.
func (f Figures) left(seconds int64) int64 {
	left := int64(0)
	if f.Copied > 0 {
		left = (f.Objects - f.Copied) * seconds / f.Copied
	}
	if f.CopiedBytes > 0 {
		left = max(left, (f.Bytes-f.CopiedBytes)/max(1, f.CopiedBytes/seconds))
	}
	return left
}

// coarse cuts a part down to whole percents of the whole.
func coarse(part, whole int64) int64 {
	if step := whole / all; step > 0 && part < whole {
		return part - part%step
	}
	return min(part, whole)
}

// halves keeps the first two binary digits: 1, 2, 3, 4, 6, 8, 12, 16...
func halves(n int64) int64 {
	step := int64(1)
	for n/step >= 4 { //nolint:mnd // two digits
		step *= 2
	}
	return n / step * step
}

// Told is how far a migration is and what it waits for, in sentences; empty when there is nothing to tell.
func Told(s plan.MigrationState) string {
	var told []string
	if s.Objects > 0 && !s.Phase.Fenced() {
		told = append(told, fmt.Sprintf("%d %% of %d objects, %s of %s%s.", s.Copied*percent/s.Objects, s.Objects, size(s.CopiedBytes), size(s.Bytes), speed(s)))
	}
	if s.Awaited != "" {
		told = append(told, "It waits for "+s.Awaited+".")
	}
	return strings.Join(told, " ")
}

func speed(s plan.MigrationState) string {
	text := ""
	if s.BytesPerSecond > 0 {
		text = ", " + size(s.BytesPerSecond) + "/s"
	}
	if s.SecondsLeft > 0 {
		text += fmt.Sprintf(", about %s left", strings.TrimSuffix((time.Duration(s.SecondsLeft)*time.Second).String(), "0s"))
	}
	return text
}

// size tells bytes in the largest unit of which there is one.
func size(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(bytes), 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if value == float64(int64(value)) {
		return fmt.Sprintf("%d %s", int64(value), units[unit])
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
