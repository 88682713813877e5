package status

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// When is a moment with its distance from now; both are empty when it is not known.
type When struct{ Machine, Ago string }

func when(at, now time.Time) When {
	if at.IsZero() {
		return When{}
	}
	return When{Machine: at.UTC().Format(time.RFC3339), Ago: ago(now.Sub(at))}
}

const day = 24 * time.Hour

// ago is coarse on purpose: a page that renews itself must not change with every second.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	default:
		return fmt.Sprintf("%d days ago", d/day)
	}
}

// left is how long something still takes.
func left(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute left"
	case d < 2*time.Hour:
		return fmt.Sprintf("about %d min left", (d+time.Minute-1)/time.Minute)
	default:
		return fmt.Sprintf("about %d h left", (d+time.Hour-1)/time.Hour)
	}
}

// Bytes is a size that a person can read: three digits and a binary unit.
func Bytes(n int64) string {
	const step = 1024
	if n < step {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, units := float64(n), []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	unit := -1
	for value >= step && unit < len(units)-1 {
		value /= step
		unit++
	}
	digits := 0
	if value < 10 { //nolint:mnd // one digit before the point leaves room for one behind it
		digits = 1
	}
	text := strconv.FormatFloat(value, 'f', digits, 64)
	return strings.TrimSuffix(text, ".0") + " " + units[unit]
}

// Number has its thousands apart, by a space that does not break.
func Number(n int64) string {
	const group = 3
	text := strconv.FormatInt(n, 10)
	for at := len(text) - group; at > 0 && text[at-1] != '-'; at -= group {
		text = text[:at] + "\u00a0" + text[at:]
	}
	return text
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return Number(int64(n)) + " " + word + "s"
}

// percent of the whole; 0 without one.
func percent(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	const hundred = 100
	return float64(part) / float64(whole) * hundred
}

// words spells a reason such as QuorumLost as "quorum lost".
func words(reason string) string {
	var b strings.Builder
	for i, r := range reason {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
