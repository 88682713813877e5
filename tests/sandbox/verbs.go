package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
	"github.com/deckhouse/system-s3/tests/sandbox/cluster"
	"github.com/deckhouse/system-s3/tests/sandbox/platform"
	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

const tablePadding = 2

func open() (cluster.Cluster, error) {
	return cluster.New(statedir.Default(), os.Stderr)
}

func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "install and build everything that is missing (long the first time)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := artifact.NewStore(os.Stderr)
			if err != nil {
				return err
			}

			return build(cmd.Context(), store, append(artifact.All(), platform.Operator()), cmd.OutOrStdout())
		},
	}
}

// build makes what is missing and writes what there is and what the builds took.
func build(ctx context.Context, store *artifact.Store, wanted []artifact.Artifact, out io.Writer) error {
	if err := artifact.EnsurePackages(ctx, os.Stderr); err != nil {
		return err
	}

	table := tabwriter.NewWriter(out, 0, 0, tablePadding, ' ', 0)

	for _, a := range wanted {
		path, err := store.Ensure(ctx, a)
		if err != nil {
			return err
		}

		fmt.Fprintf(table, "%s\t%s\t%s\n", a.Name, a.Version, path) //nolint:errcheck // told by Flush
	}

	for _, used := range store.Builds() {
		fmt.Fprintf(table, "built %s\n", used) //nolint:errcheck // told by Flush
	}

	return table.Flush()
}

func upCommand() *cobra.Command {
	var (
		size    cluster.Options
		options platform.Options
		bare    bool
	)

	cmd := &cobra.Command{
		Use:   "up",
		Short: "bring the sandbox up, or what is missing of it; options stay until others are given",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := open()
			if err != nil {
				return err
			}

			wanted := artifact.Cluster()
			if !bare {
				wanted = append(artifact.All(), platform.Operator())
			}

			// Before anything is locked: nobody need wait for a build but us.
			if err := build(cmd.Context(), c.Store, wanted, io.Discard); err != nil {
				return err
			}

			further := func(ctx context.Context) error {
				if bare {
					return nil
				}

				return upPlatform(ctx, c, options, cmd.Flags())
			}

			if err := c.Up(cmd.Context(), size, further); err != nil {
				return err
			}

			fmt.Fprintf(cmd.OutOrStdout(), "the cluster is up: export KUBECONFIG=%s, or use `sandbox kubectl`\n", c.Dir.Kubeconfig()) //nolint:errcheck // information only

			return nil
		},
	}
	cmd.Flags().IntVar(&size.Masters, "masters", 0, "how many of the nodes are masters (default 1)")
	cmd.Flags().IntVar(&size.Nodes, "nodes", 0, "how many nodes (default 3); less than there are takes none away")
	cmd.Flags().BoolVar(&bare, "bare", false, "this time only Kubernetes: leave Deckhouse's parts and the module as they are")
	options.AddFlags(cmd.Flags())

	return cmd
}

// upPlatform brings Deckhouse's parts and the module up, with the options of the last
// time where the flags do not say otherwise.
func upPlatform(ctx context.Context, c cluster.Cluster, options platform.Options, flags *pflag.FlagSet) error {
	if err := options.Remember(c.Dir, flags); err != nil {
		return err
	}

	return c.Step(ctx, "platform", func(ctx context.Context) error {
		return platform.Up(ctx, platform.Env{Dir: c.Dir, Options: options})
	})
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

			return c.Down(cmd.Context())
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

			return c.Status(cmd.Context(), cmd.OutOrStdout())
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
				return err
			}

			env := append(os.Environ(), "KUBECONFIG="+c.Dir.Kubeconfig())

			return syscall.Exec(binary, append([]string{"kubernetes", "kubectl"}, args...), env) //nolint:gosec // kubectl with the caller's own arguments
		},
	}
}
