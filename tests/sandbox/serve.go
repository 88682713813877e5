package main

import (
	"github.com/spf13/cobra"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/controlplane"
	"github.com/deckhouse/system-s3/tests/sandbox/provisioner"
	"github.com/deckhouse/system-s3/tests/sandbox/registry"
	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

// serveCommand holds the roles in which "up" starts this program in the background.
func serveCommand() *cobra.Command {
	var dir string

	cmd := &cobra.Command{Use: "serve", Short: "the background roles that up starts", Hidden: true}
	cmd.PersistentFlags().StringVar(&dir, "dir", string(statedir.Default()), "state directory")

	var listen string

	images := &cobra.Command{
		Use:  "registry",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return registry.Serve(cmd.Context(), listen, statedir.Dir(dir).Path("registry"))
		},
	}
	images.Flags().StringVar(&listen, "address", address.Registry(), "host:port to listen on")

	volumes := &cobra.Command{
		Use:  "provisioner",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := controlplane.Client(statedir.Dir(dir))
			if err != nil {
				return err
			}

			return provisioner.Run(cmd.Context(), client, statedir.Dir(dir))
		},
	}

	cmd.AddCommand(images, volumes)

	return cmd
}
