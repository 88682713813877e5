package revocation

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/sts"
)

const (
	// passTimeout bounds a review of everybody: as many as are remembered at all, at the rate that the client allows.
	passTimeout = 5 * time.Minute
	// questionTimeout bounds one question to the apiserver.
	questionTimeout = 5 * time.Second
	// sideBySide is how many questions are asked at the same time.
	sideBySide = 8
)

// Publisher tells all gateways the whole list of lost rights.
type Publisher interface {
	Publish(ctx context.Context, list []entry)
}

// Reviewer asks RBAC again about everybody who holds living keys.
type Reviewer struct {
	Reader     client.Reader // asks the apiserver, no cache
	Authorizer sts.Authorizer
	Publisher  Publisher
	Pace       Pace
	Now        func() time.Time
	Log        logr.Logger

	holdings []Holding // all that were read and whose keys may still live
	verdicts map[holder]verdict
	reviews  int // complete ones
}

// NeedLeaderElection is true: gateways take one list, so one replica makes it.
func (*Reviewer) NeedLeaderElection() bool { return true }

// Start reviews until the context ends.
func (r *Reviewer) Start(ctx context.Context) error {
	ticker := time.NewTicker(r.Pace.Tick)
	defer ticker.Stop()
	for tick := 0; ; tick++ {
		r.tick(ctx, tick%r.Pace.Rounds == 0 || r.reviews < confirmed)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// confirmed is after how many reviews of everybody all losses are known. Until then a new leader tells the gateways
// nothing: they go on with the list of the one before.
const confirmed = 2

// tick reviews everybody, or only those whose right is in doubt or lost, and tells the gateways. Everything that is not
// known stays as it was.
func (r *Reviewer) tick(ctx context.Context, everybody bool) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	holdings, err := store{reader: r.Reader, now: r.Now}.read(ctx)
	// A ConfigMap that was deleted or cut makes nobody's keys expire: what was once read counts to its end.
	r.holdings = together(living(r.holdings, r.Now()), holdings)
	if err != nil {
		r.Log.Info("holders of keys not read, going on with those known", "holders", len(r.holdings), "reason", err.Error())
	}
	if r.review(ctx, everybody) && everybody && err == nil {
		r.reviews++
	}
	if r.reviews >= confirmed {
		r.Publisher.Publish(ctx, entries(r.holdings, r.verdicts))
	}
}

func living(holdings []Holding, now time.Time) []Holding {
	return slices.DeleteFunc(holdings, func(h Holding) bool { return !now.Before(h.Until) })
}

// review takes up what RBAC says now, and tells whether it has said something about everybody who was asked about.
func (r *Reviewer) review(ctx context.Context, everybody bool) bool {
	var (
		mu       sync.Mutex
		complete = true
		next     = make(map[holder]verdict)
		asking   errgroup.Group
	)
	asking.SetLimit(sideBySide)
	for _, h := range r.holdings {
		before := r.verdicts[h.holder()]
		if !everybody && before.clear() {
			continue
		}
		asking.Go(func() error {
			granted, err := r.ask(ctx, h)
			mu.Lock()
			defer mu.Unlock()
			next[h.holder()] = before
			if err != nil {
				complete = false
				r.Log.V(1).Info("right not reviewed", "serviceAccount", h.User, "reason", err.Error())
				return nil
			}
			next[h.holder()] = before.next(h.Permission, granted)
			return nil
		})
	}
	_ = asking.Wait() // none returns an error
	if !complete {
		r.Log.Info("some rights could not be reviewed and stay as they were")
	}
	maps.DeleteFunc(next, func(_ holder, v verdict) bool { return v.clear() })
	r.tell(next)
	r.verdicts = next
	return complete
}

func (r *Reviewer) ask(ctx context.Context, h Holding) (access.Permission, error) {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	return r.Authorizer.Authorize(ctx, h.identity(), h.role()) //nolint:wrapcheck // it says what was asked
}

// tell writes down, once each, whose keys are taken back and whose are no longer.
func (r *Reviewer) tell(next map[holder]verdict) {
	for _, h := range r.holdings {
		before, now := r.verdicts[h.holder()].lost, next[h.holder()].lost
		if before == now {
			continue
		}
		words := "a right was taken away: keys with it are refused"
		if now == 0 {
			words = "a right was given back: keys with it are accepted"
		}
		r.Log.Info(words, "serviceAccount", h.User, "namespace", h.Namespace, "bucket", h.Name, "s3Bucket", h.Bucket,
			"lost", now.String(), "lostBefore", before.String(), "subject", access.SubjectTag(h.User).String())
	}
}
