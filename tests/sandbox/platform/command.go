package platform

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

// Command is the verb `sandbox platform`: looking at the stand-ins for Deckhouse and
// stopping and starting its parts.
func Command() *cobra.Command {
	var dir string

	cmd := &cobra.Command{
		Use:   "platform",
		Short: "look at the Deckhouse stand-ins of a running sandbox, stop and start their parts",
		Args:  cobra.NoArgs,
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", string(statedir.Default()), "state directory of the sandbox")

	verb := func(use, short string, work work) {
		cmd.AddCommand(&cobra.Command{
			Use: use, Short: short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				env, err := Load(statedir.Dir(dir))
				if err != nil {
					return err
				}

				return work(cmd.Context(), env)
			},
		})
	}

	verb("run", "serve the stand-ins in the foreground; `sandbox up` starts this by itself", serve)
	cmd.AddCommand(updateCommand(&dir))
	verb("stop-operator", "stop addon-operator, as if Deckhouse were down", alone(StopOperator))
	verb("start-operator", "start addon-operator again", alone(StartOperator))
	verb("stop-standins", "stop the stand-ins and with them the webhooks", alone(func(ctx context.Context, env Env) error {
		return wrap("stop the platform", env.processes().Stop(ctx, PlatformProcess, platformGrace))
	}))
	verb("start-standins", "start the stand-ins again", alone(startPlatform))
	verb("status", "tell how the platform and the module are doing", func(ctx context.Context, env Env) error {
		Status(ctx, env, os.Stdout)

		return nil
	})
	verb("logs", "print addon-operator's log", func(_ context.Context, env Env) error {
		return Logs(env, OperatorProcess, os.Stdout)
	})

	return cmd
}

// updateCommand is the verb that installs the module anew, of this checkout or of another one.
func updateCommand(dir *string) *cobra.Command {
	var checkout string

	cmd := &cobra.Command{
		Use: "update", Short: "bring the module up to date with the checkout", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, err := Load(statedir.Dir(*dir))
			if err != nil {
				return err
			}

			// The programs and the cluster may be others than at the last start.
			return alone(Up)(cmd.Context(), Env{Dir: env.Dir, Options: env.Options, Checkout: checkout})
		},
	}
	cmd.Flags().StringVar(&checkout, "checkout", "", "root of another checkout of the module, such as an earlier version")

	return cmd
}

// work of a verb on a platform that was started before.
type work func(context.Context, Env) error

// alone does the work while no other command changes the sandbox.
func alone(w work) work {
	return func(ctx context.Context, env Env) error {
		unlock, err := env.Dir.Lock(ctx, os.Stderr)
		if err != nil {
			return fmt.Errorf("change the platform: %w", err)
		}
		defer unlock()

		return w(ctx, env)
	}
}

// serve runs the stand-ins until the process is told to end.
func serve(ctx context.Context, env Env) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()

	return run(ctx, env, slog.New(slog.NewTextHandler(os.Stderr, nil)))
}
