package sts

import (
	"context"
	"errors"
	"hash/maphash"
	"net"
	"time"

	"golang.org/x/time/rate"
)

// Rate is a token bucket: a steady number of requests a second, and how many may come at once.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Limits protect the endpoint and the apiserver behind it.
type Limits struct {
	// InFlight is the number of exchanges that may wait for the apiserver at the same time.
	InFlight int
	// Source limits each peer address before its token is looked at, Subject each ServiceAccount after that: one of
	// either cannot use up what the others need.
	Source, Subject Rate
	// Request bounds a whole exchange. Some clients give up after five seconds, and an error that they can read is
	// better than silence.
	Request time.Duration
	// Attempt bounds one question to the apiserver, Queue the wait for a place among those in flight.
	Attempt, Queue time.Duration
	// Pause is the first wait before a question is asked again; each next one is twice as long.
	Pause time.Duration
}

func (l Limits) withDefaults() Limits {
	defaults := Limits{
		InFlight: 64,
		Source:   Rate{PerSecond: 50, Burst: 200},
		Subject:  Rate{PerSecond: 20, Burst: 100},
		Request:  4500 * time.Millisecond,
		Attempt:  2 * time.Second,
		Queue:    time.Second,
		Pause:    100 * time.Millisecond,
	}
	setDefault(&l.InFlight, defaults.InFlight)
	setDefault(&l.Source, defaults.Source)
	setDefault(&l.Subject, defaults.Subject)
	setDefault(&l.Request, defaults.Request)
	setDefault(&l.Attempt, defaults.Attempt)
	setDefault(&l.Queue, defaults.Queue)
	setDefault(&l.Pause, defaults.Pause)
	return l
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// throttleSize is the number of token buckets of a throttle. Names are hashed to buckets, so that no flood of names can
// grow the memory; two names share one with a probability of 1 in 4096.
const throttleSize = 4096

type throttle struct {
	seed    maphash.Seed
	buckets [throttleSize]*rate.Limiter
}

func newThrottle(r Rate) *throttle {
	t := &throttle{seed: maphash.MakeSeed()}
	for i := range t.buckets {
		t.buckets[i] = rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst)
	}
	return t
}

// allow takes one token of the name's bucket, if there is one.
func (t *throttle) allow(name string, now time.Time) bool {
	return t.buckets[maphash.String(t.seed, name)%throttleSize].AllowN(now, 1)
}

// enter takes a place among the exchanges in flight and returns how to leave it. A short wait beats an immediate
// refusal: some clients never try again.
func (h *Handler) enter(ctx context.Context) (func(), error) {
	timer := time.NewTimer(h.Limits.Queue)
	defer timer.Stop()
	select {
	case h.inFlight <- struct{}{}:
		return func() { <-h.inFlight }, nil
	case <-timer.C:
		return nil, errThrottled
	case <-ctx.Done():
		return nil, errThrottled
	}
}

// patiently asks until there is an answer, the error is one of the final ones or the context ends. It returns the last
// answer.
func patiently[T any](ctx context.Context, limits Limits, ask func(context.Context) (T, error), final error) (T, error) {
	for pause := limits.Pause; ; pause *= 2 {
		attempt, cancel := context.WithTimeout(ctx, limits.Attempt)
		answer, err := ask(attempt)
		cancel()
		if err == nil || errors.Is(err, final) {
			return answer, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return answer, err
		}
	}
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
