package main

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
	"github.com/deckhouse/system-s3/tests/sandbox/cluster"
	"github.com/deckhouse/system-s3/tests/sandbox/platform"
	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

func open() (cluster.Cluster, error) {
	return cluster.New(statedir.Default(), os.Stderr) //nolint:wrapcheck // told by main
}

func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "install and build everything that is missing (long the first time)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := artifact.NewStore(os.Stderr)
			if err != nil {
				return err //nolint:wrapcheck // told by main
			}

			if err := artifact.EnsurePackages(cmd.Context(), os.Stderr); err != nil {
				return err //nolint:wrapcheck // told by main
			}

			for _, a := range append(artifact.All(), platform.Operator()) {
				path, err := store.Ensure(cmd.Context(), a)
				if err != nil {
					return err //nolint:wrapcheck // told by main
				}

				fmt.Fprintf(cmd.OutOrStdout(), "%s %s\t%s\n", a.Name, a.Version, path) //nolint:errcheck // information only
			}

			return nil
		},
	}
}

func upCommand() *cobra.Command {
	var (
		options cluster.Options
		env     platform.Env
		bare    bool
	)

	cmd := &cobra.Command{
		Use:   "up",
		Short: "bring the sandbox up, or what is missing of it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := open()
			if err != nil {
				return err
			}

			if err := c.Up(cmd.Context(), options); err != nil {
				return err //nolint:wrapcheck // told by main
			}

			env.Dir = c.Dir
			if err := c.Step(cmd.Context(), "platform", func(ctx context.Context) error {
				if bare {
					return nil
				}

				return platform.Up(ctx, env)
			}); err != nil {
				return err //nolint:wrapcheck // told by main
			}

			fmt.Fprintf(cmd.OutOrStdout(), "the cluster is up: export KUBECONFIG=%s, or use `sandbox kubectl`\n", c.Dir.Kubeconfig()) //nolint:errcheck // information only

			return nil
		},
	}
	cmd.Flags().IntVar(&options.Masters, "masters", 0, "how many of the nodes are masters (default: as it is, 1 when new)")
	cmd.Flags().IntVar(&options.Nodes, "nodes", 0, "how many nodes (default: as it is, 3 when new)")
	cmd.Flags().BoolVar(&bare, "bare", false, "only Kubernetes: neither Deckhouse's parts nor the module")
	env.Options.AddFlags(cmd.Flags())

	return cmd
}

func downCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "remove the sandbox, from whatever state it is in",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := open()
			if err != nil {
				return err
			}

			return c.Down(cmd.Context()) //nolint:wrapcheck // told by main
		},
	}
}

func statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "tell what runs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := open()
			if err != nil {
				return err
			}

			return c.Status(cmd.Context(), cmd.OutOrStdout()) //nolint:wrapcheck // told by main
		},
	}
}

// kubectlCommand becomes kubectl with the administrator's kubeconfig.
func kubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl [arguments]",
		Short:              "run kubectl against the sandbox",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := open()
			if err != nil {
				return err
			}

			binary, err := c.Store.Ensure(cmd.Context(), artifact.Kubernetes())
			if err != nil {
				return err //nolint:wrapcheck // told by main
			}

			env := append(os.Environ(), "KUBECONFIG="+c.Dir.Kubeconfig())

			return syscall.Exec(binary, append([]string{"kubernetes", "kubectl"}, args...), env) //nolint:wrapcheck // told by main
		},
	}
}
