// Command scale measures the life of buckets on the sandbox that is up: how fast they are made, how fast they are
// deleted with their objects beside what rclone needs for the same, and what many of them cost the controller. It makes
// SystemBuckets in a namespace of its own and takes them away at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/deckhouse/system-s3/tests/demo/stage"
)

const usage = `scale measures the life of buckets on the sandbox that is up. Usage:

  scale creation [--count 100]      how long a SystemBucket takes to be ready
  scale deletion [--objects 100000] a deletion beside rclone purge (--rclone PROGRAM)
  scale many     [--buckets 5000]   a pass after a restart, memory and calls at rest
`

var errUsage = errors.New("unknown measurement")

// options of a measurement.
type options struct {
	count, objects, buckets int
	rclone                  string
	keep                    bool
}

func main() {
	var o options
	flag.IntVar(&o.count, "count", 100, "how many SystemBuckets to make, one after another")
	flag.IntVar(&o.objects, "objects", 100_000, "how many objects of 4 KiB to delete")
	flag.IntVar(&o.buckets, "buckets", 5_000, "how many SystemBuckets there are at once")
	flag.StringVar(&o.rclone, "rclone", "rclone", "the program of rclone")
	flag.BoolVar(&o.keep, "keep", false, "leave the SystemBuckets of `many` for another run")
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	if len(os.Args) < 2 { //nolint:mnd // the program and the measurement
		flag.Usage()
		os.Exit(2) //nolint:mnd // wrong usage, as the flag package has it
	}
	_ = flag.CommandLine.Parse(os.Args[2:]) // it ends the process itself
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1], o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, what string, o options) error {
	measure, known := map[string]func(context.Context, *ground, options) error{
		"creation": creation, "deletion": deletion, "many": many,
	}[what]
	if !known {
		return fmt.Errorf("%w: %s", errUsage, what)
	}
	s, err := stage.Open(ctx, os.Stderr)
	if err != nil {
		return err
	}
	g := &ground{Stage: s}
	if err := g.prepare(ctx); err != nil {
		return err
	}
	return measure(ctx, g, o)
}
