package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/tour/ground"
	"github.com/deckhouse/system-s3/tests/tour/load"
	"github.com/deckhouse/system-s3/tests/tour/scenario"
)

const (
	namespace = "d8-tour"
	size      = "4Gi"
	// keys is how many objects a client keeps.
	keys = 120
	// after is how long clients go on after a scenario: what it does to them may come late.
	after = 15 * time.Second
	// diagnosis is how long it may take to collect what explains a failure.
	diagnosis = time.Minute
)

var (
	errLoss   = errors.New("what was acknowledged is not what is there")
	errNoCopy = errors.New("the gate is open and a replica has no copy")
	errFlaws  = errors.New("clients saw errors that they must not see")
)

// row of the table at the end.
type row struct {
	scenario string
	begun    time.Time
	length   time.Duration
	phase    load.Phase
	verdict  string
}

// tour is one run.
type tour struct {
	*ground.Ground

	options options
	load    *load.Load
	rows    []row
	flawed  bool
}

// begin brings the store and its clients.
func begin(ctx context.Context, s *stage.Stage, o options) (*tour, error) {
	t := &tour{options: o, Ground: &ground.Ground{
		Stage: s, Bucket: client.ObjectKey{Namespace: namespace, Name: "tour"}, Dice: dice(o.seed, 0),
	}}
	s.Sayf("seed %d", o.seed)
	if err := t.Open(ctx, size, o.class); err != nil {
		return nil, err
	}
	door, bucket, err := t.Door(ctx)
	if err != nil {
		return nil, err
	}
	prefix := fmt.Sprintf("%d-%d/", o.seed, time.Now().Unix()) // a seed may be played again on the same store
	t.load = load.New(load.Options{
		S3: door, Bucket: bucket, Prefix: prefix, Seed: o.seed, Workers: o.workers, Pause: o.pause, Keys: keys,
	})
	return t, nil
}

// play plays the scenarios and prints the table, whatever happens.
func (t *tour) play(ctx context.Context, chosen []scenario.Scenario) error {
	begun := time.Now()
	err := t.Settle(ctx)
	t.load.Begin("rest")
	t.load.Start(ctx)
	order := t.Dice
	for n := 0; err == nil && t.options.another(n, len(chosen), time.Since(begun)); n++ {
		if n%len(chosen) == 0 {
			order.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		}
		t.Dice = dice(t.options.seed, 1+n) // of its own, so that one scenario's chances don't hang on another's
		err = t.one(ctx, chosen[n%len(chosen)])
	}
	t.load.Stop()
	if err != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), diagnosis)
		defer cancel()
		t.Diagnose(late, namespace)
	}
	t.table(time.Since(begun))
	if err == nil && t.flawed {
		err = errFlaws
	}
	return err
}

// another tells whether one more scenario is played after so many of so many kinds.
func (o options) another(played, kinds int, length time.Duration) bool {
	if o.most > 0 && length >= o.most {
		return false
	}
	return played < o.times*kinds || length < o.least
}

func dice(seed uint64, number int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(number))) //nolint:gosec // chance, not secrecy
}

// one plays a scenario, waits until the store is well and proven whole, and checks everything.
func (t *tour) one(ctx context.Context, s scenario.Scenario) error {
	t.Stage.Sayf("\n== %s: %s", s.Name, s.About)
	r := row{scenario: s.Name, begun: time.Now(), verdict: "ok"}
	t.load.Begin(s.Name)
	err := s.Play(ctx, t.Ground)
	t.Wait(ctx, after)
	if err == nil {
		err = t.Settle(ctx)
	}
	r.phase, r.length = t.load.Begin("check after "+s.Name), time.Since(r.begun)
	if unexpected := s.Unexpected(r.phase.Errors); len(unexpected) > 0 {
		r.verdict, t.flawed = "errors", true
	}
	if told := r.phase.Told(); told != "" {
		t.Sayf("clients saw %s", told)
	}
	found, checked := t.check(ctx, err == nil && t.options.proof)
	for _, f := range found {
		t.Stage.Sayf("FOUND %s", f)
	}
	switch {
	case len(found) > 0:
		r.verdict, err = kinds(found), errors.Join(err, errLoss)
	case err != nil:
		r.verdict = "not well"
	case checked != nil:
		r.verdict, err = "not whole", checked
	}
	t.rows = append(t.rows, r)
	t.Sayf("%s: %d requests, %d failed, %d retried, %d stale listings, stall %.1f s; %d objects of %d keys checked", r.verdict, r.phase.Requests,
		r.phase.Failed, r.phase.Retried, r.phase.Stale, r.phase.Stall.Seconds(), len(t.load.Present()), t.load.Keys())
	return err
}

// check reads everything back while the clients rest. If asked to prove all copies it waits for the gate before, and
// looks on the disks for every copy that is proven then.
func (t *tour) check(ctx context.Context, prove bool) ([]load.Finding, error) {
	resume := t.load.Rest()
	defer resume()
	var err error
	if prove {
		err = t.whole(ctx)
	}
	found, unchecked := t.load.Check(ctx)
	return found, errors.Join(err, unchecked)
}

// whole waits for the proof of all copies and then believes only the disks.
func (t *tour) whole(ctx context.Context) error {
	begun := time.Now()
	if err := t.Prove(ctx); err != nil {
		return err
	}
	keys := t.load.Present()
	missing, err := t.Missing(ctx, keys)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s", errNoCopy, strings.Join(missing, "; "))
	}
	t.Sayf("proven after %.0f s, and the copies of %d objects are on every disk", time.Since(begun).Seconds(), len(keys))
	return t.Equal(ctx)
}

// kinds counts findings by kind.
func kinds(found []load.Finding) string {
	var told []string
	for _, kind := range []load.Kind{load.Lost, load.Wrong, load.Resurrected, load.Unreadable} {
		n := 0
		for _, f := range found {
			if f.Kind == kind {
				n++
			}
		}
		if n > 0 {
			told = append(told, fmt.Sprintf("%d %s", n, strings.ToUpper(string(kind))))
		}
	}
	return strings.Join(told, ", ")
}

// table tells everything in one view.
func (t *tour) table(length time.Duration) {
	t.Stage.Sayf("\nseed %d, %s", t.options.seed, length.Round(time.Second))
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0) //nolint:mnd // spaces between columns
	line := func(format string, args ...any) {
		fmt.Fprintf(w, format+"\n", args...) //nolint:errcheck // there is nobody else to tell
	}
	line("scenario\tbegun\tseconds\trequests\tfailed\tretried\tstale listings\tlongest stall, s\tverdict")
	for _, r := range t.rows {
		line("%s\t%s\t%.0f\t%d\t%d\t%d\t%d\t%.1f\t%s", r.scenario, r.begun.UTC().Format(time.TimeOnly), r.length.Seconds(),
			r.phase.Requests, r.phase.Failed, r.phase.Retried, r.phase.Stale, r.phase.Stall.Seconds(), r.verdict)
	}
	_ = w.Flush()
}
