// Command clients runs S3 clients against the sandbox that is up, each in a Pod that has nothing but the connection
// ConfigMap as environment and a projected token, and prints a table of clients and operations. It fails when a cell is
// not what it should be. The keys of the sandbox must be short-lived: bin/sandbox up --key-lifetime 30s.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/deckhouse/system-s3/tests/clients/matrix"
	"github.com/deckhouse/system-s3/tests/clients/roster"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
)

// options of a run; the defaults are those of the wide form.
type options struct {
	clients []roster.Client
	// large is the size in bytes of the object in parts, many how many objects each client deletes.
	large, many int
	parallel    int
	// prepare is to build what comes from elsewhere and no more: it needs the package registries, but no sandbox.
	prepare bool
}

func main() {
	var (
		o     options
		fast  bool
		named string
	)
	flag.BoolVar(&fast, "fast", false, "only the small clients, and smaller amounts")
	flag.StringVar(&named, "clients", "", "only these clients, comma-separated")
	flag.IntVar(&o.large, "large", 0, "size in bytes of the object sent in parts (default 100 MiB, 20 MiB with -fast)")
	flag.IntVar(&o.many, "many", 0, "how many objects a client deletes at once (default 1100, 100 with -fast)")
	flag.IntVar(&o.parallel, "parallel", 0, "how many clients run at once (default 3, 7 with -fast: they mostly wait for a key's end)")
	flag.BoolVar(&o.prepare, "prepare", false, "only build what comes from elsewhere, into the cache")
	flag.Parse()
	o.clients = roster.Select(named, fast)
	fill(&o.large, fast, 20<<20, 100<<20)
	fill(&o.many, fast, 100, 1100)
	fill(&o.parallel, fast, 7, 3)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

// fill sets what was not asked for.
func fill(value *int, fast bool, small, wide int) {
	if *value > 0 {
		return
	}
	*value = wide
	if fast {
		*value = small
	}
}

func run(ctx context.Context, o options) error {
	if o.prepare {
		return prepare(ctx, o)
	}
	s, err := stage.Open(ctx, os.Stderr)
	if err != nil {
		return err
	}
	rows, examples, err := play(ctx, s, o)
	if err != nil {
		return err
	}
	return errors.Join(matrix.Print(os.Stdout, rows), matrix.PrintExamples(os.Stdout, examples))
}

func prepare(ctx context.Context, o options) error {
	builds, err := artifact.NewStore(os.Stderr)
	if err != nil {
		return fmt.Errorf("open the store of builds: %w", err)
	}
	var failed error
	for _, one := range o.clients {
		_, err := ensure(ctx, builds, workshop{source(builds)}, one.Image)
		failed = errors.Join(failed, err)
	}
	return failed
}
