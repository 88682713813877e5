// Command suite runs versitygw's integration suite, an independent check of S3's protocol, against the sandbox that is
// up, through the test's front: see package front. It fails when a test fails that the table does not expect, when one
// fails for another reason than the table says, and when one passes that the table lists.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/suite/front"
	"github.com/deckhouse/system-s3/tests/suite/peer"
	"github.com/deckhouse/system-s3/tests/suite/sandboxed"
	"github.com/deckhouse/system-s3/tests/suite/table"
)

var errWrong = errors.New("the suite and its table disagree: see above")

// options of a run.
type options struct {
	only     string
	parallel int
	ahead    int
	verbose  bool
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "run only the tests whose names match the regular expression")
	flag.IntVar(&o.parallel, "parallel", 8, "how many tests run at once")
	flag.IntVar(&o.ahead, "ahead", 16, "how many SystemBuckets are kept ready")
	flag.BoolVar(&o.verbose, "v", false, "tell each test as it ends")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	expected, err := table.Load()
	if err != nil {
		return fmt.Errorf("read the table: %w", err)
	}
	p := peer.Options{Parallel: o.parallel}
	if p.Only, err = regexp.Compile(o.only); err != nil {
		return fmt.Errorf("read -only: %w", err)
	}
	if o.verbose {
		p.Told = func(name string, took time.Duration, said error) {
			fmt.Fprintf(os.Stderr, "%6.1fs %s: %v\n", took.Seconds(), name, said)
		}
	}
	s, err := stage.Open(ctx, os.Stderr)
	if err != nil {
		return fmt.Errorf("find the sandbox: %w", err)
	}
	store, err := sandboxed.Open(ctx, s, o.ahead)
	if err != nil {
		return fmt.Errorf("make ready for the suite: %w", err)
	}
	p.Ready = store.Ready
	f := &front.Front{Store: store, Endpoint: store.Endpoint(), Transport: store.Transport()}
	if err := f.Open(ctx); err != nil {
		return fmt.Errorf("open the front: %w", err)
	}
	results, err := peer.Run(ctx, f, expected, p)
	if err := errors.Join(err, store.Close(ctx)); err != nil {
		return fmt.Errorf("run the suite: %w", err)
	}
	j := expected.Judge(results, peer.Names(), o.only == "")
	j.Print(os.Stdout, expected)
	if len(j.Wrong) > 0 {
		return errWrong
	}
	return nil
}
