package revocation

import "time"

// Pace is how often what is done.
type Pace struct {
	// Tick is how often new holders are written down, doubts are looked into and gateways are told.
	Tick time.Duration
	// Rounds is after how many ticks everybody is reviewed.
	Rounds int
	// Slot is what ends of lives are rounded up to.
	Slot time.Duration
}

// PaceFor keys of the lifetime: everybody is reviewed every half minute and a loss is looked at twice, ten seconds
// apart, so a right that is taken away is told within a minute. Keys that live for seconds only go faster.
func PaceFor(lifetime time.Duration) Pace {
	const (
		longest, shortest = 10 * time.Second, time.Second
		ticksOfLife       = 30
		slotsOfLife       = 6
		rounds            = 3
	)
	return Pace{Tick: max(shortest, min(longest, lifetime/ticksOfLife)), Rounds: rounds, Slot: max(shortest, lifetime/slotsOfLife)}
}
