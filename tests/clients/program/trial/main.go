package trial

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main is the main function of a program that is one client: its words are PREFIX LARGE LISTED MANY PAST.
func Main(open func(Parameters) (Client, error)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := play(ctx, open)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func play(ctx context.Context, open func(Parameters) (Client, error)) error {
	p, err := Parse(os.Args[1:])
	if err != nil {
		return err
	}
	client, err := open(p)
	if err != nil {
		return err
	}
	Run(ctx, os.Stdout, p, client)
	return nil
}
