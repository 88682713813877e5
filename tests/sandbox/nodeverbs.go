package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/deckhouse/system-s3/tests/sandbox/cluster"
)

func nodeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "add, stop, start and lose nodes"}

	var master bool

	add := nodeVerb("add", "add a node; its name ends with its number, such as node-4",
		func(ctx context.Context, c cluster.Cluster, name string) error { return c.AddNode(ctx, name, master) })
	add.Flags().BoolVar(&master, "master", false, "make it a master")

	cmd.AddCommand(
		add,
		nodeVerb("stop", "switch a node off at once", func(ctx context.Context, c cluster.Cluster, name string) error {
			return c.StopNode(ctx, name)
		}),
		nodeVerb("start", "switch a stopped node on", func(ctx context.Context, c cluster.Cluster, name string) error {
			return c.StartNode(ctx, name)
		}),
		nodeVerb("lose", "switch a node off for ever and destroy its disks", func(ctx context.Context, c cluster.Cluster, name string) error {
			return c.LoseNode(ctx, name)
		}),
	)

	return cmd
}

func nodeVerb(use, short string, work func(context.Context, cluster.Cluster, string) error) *cobra.Command {
	return &cobra.Command{
		Use:   use + " NAME",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := open()
			if err != nil {
				return err
			}

			return work(cmd.Context(), c, args[0])
		},
	}
}
