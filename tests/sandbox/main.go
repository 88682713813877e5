// Command sandbox runs a real Kubernetes with everything around it on one machine,
// for looking around and for the tests of system-s3. See README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/deckhouse/system-s3/tests/sandbox/platform"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)

	stop()

	if err != nil {
		fmt.Fprintf(os.Stderr, "sandbox: %v\n", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "sandbox",
		Short:         "a real Kubernetes with Deckhouse's parts on one machine, without Docker",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(
		buildCommand(), upCommand(), downCommand(), statusCommand(), logsCommand(), nodeCommand(),
		imageCommand(), kubectlCommand(), platform.Command(), serveCommand(),
	)

	return cmd
}
