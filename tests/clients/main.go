// Command clients runs S3 clients against the sandbox that is up, each in a Pod that has nothing but the connection
// ConfigMap as environment and a projected token, and prints a table of clients and operations. It fails when a cell is
// not what it should be. The keys of the sandbox must be short-lived: bin/sandbox up --key-lifetime 30s.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/deckhouse/system-s3/tests/clients/matrix"
	"github.com/deckhouse/system-s3/tests/clients/roster"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

// options of a run; the defaults are those of the wide form.
type options struct {
	clients []roster.Client
	// large is the size in bytes of the object in parts, many how many objects each client deletes.
	large, many int
	parallel    int
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
	flag.IntVar(&o.parallel, "parallel", 3, "how many clients run at once")
	flag.Parse()
	o.clients = roster.Select(named, fast)
	fill(&o.large, fast, 20<<20, 100<<20)
	fill(&o.many, fast, 100, 1100)

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
	s, err := stage.Open(ctx, os.Stderr)
	if err != nil {
		return err
	}
	rows, err := play(ctx, s, o)
	if err != nil {
		return err
	}
	return matrix.Print(os.Stdout, rows)
}
