// Command demo shows the main job of system-s3 on a sandbox that is up: an administrator enables the module, a component
// asks for a bucket, and three Pods try to use it. It prints what it does and leaves everything in place.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/deckhouse/system-s3/tests/demo/stage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	s, err := stage.Open(ctx, os.Stdout)
	if err != nil {
		return err
	}
	if err := play(ctx, s); err != nil {
		const limit = time.Minute
		// The story may have ended because its context did; what explains it is still worth telling.
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		s.Diagnose(after, namespace)
		return err
	}
	return nil
}
