// Command tour hurts the store on the sandbox that is up in every way it knows, in an order that a random seed decides,
// while clients work on it, and checks after each scenario that nothing that was acknowledged is lost, wrong or back.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/tour/scenario"
)

const usage = `tour hurts the store on the sandbox that is up while clients work on it. Usage: tour [flags]

Every scenario is played -times times in an order that the seed decides, and then again until -least is over. It ends
at the first loss and leaves everything as it is then. A store that is there is used; there should be three replicas.

`

// options of a tour.
type options struct {
	seed        uint64
	times       int
	least, most time.Duration
	only        string
	class       string
	workers     int
	pause       time.Duration
	proof       bool
	list        bool
}

var errUnknown = errors.New("no such scenario")

func main() {
	o := options{}
	flag.Uint64Var(&o.seed, "seed", 0, "seed of order and chance; 0 takes a random one, which is printed")
	flag.IntVar(&o.times, "times", 2, "how often each scenario is played at least")
	flag.DurationVar(&o.least, "least", time.Hour, "how long the tour takes at least")
	flag.DurationVar(&o.most, "most", 0, "after how long no other scenario is begun; 0 never stops early")
	flag.StringVar(&o.only, "only", "", "names of scenarios, separated by commas; empty plays all")
	flag.StringVar(&o.class, "class", "fixed", "StorageClass of a store that is made anew; `fixed` cannot grow")
	flag.IntVar(&o.workers, "workers", 4, "how many clients work at once")                                //nolint:mnd // a default
	flag.DurationVar(&o.pause, "pause", 200*time.Millisecond, "pause of a client between two operations") //nolint:mnd // a default
	flag.BoolVar(&o.proof, "proof", true, "prove after each scenario that all copies are there; false is for trying scenarios out")
	flag.BoolVar(&o.list, "list", false, "list the scenarios and end")
	flag.Usage = func() {
		_, _ = fmt.Fprint(os.Stderr, usage) // there is nobody else to tell
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tour:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	chosen, unknown := scenario.Choose(o.only)
	if len(unknown) > 0 {
		return fmt.Errorf("%w: %s", errUnknown, strings.Join(unknown, ", "))
	}
	if o.list {
		for _, s := range chosen {
			if _, err := fmt.Fprintf(os.Stdout, "%-16s %s\n", s.Name, s.About); err != nil {
				return fmt.Errorf("list the scenarios: %w", err)
			}
		}
		return nil
	}
	s, err := stage.Open(ctx, os.Stdout)
	if err != nil {
		return err
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano())
	}
	t, err := begin(ctx, s, o)
	if err != nil {
		return err
	}
	return t.play(ctx, chosen)
}
