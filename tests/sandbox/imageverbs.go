package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/image"
)

var errPair = errors.New("want <path in the image>=<file on this machine>")

func imageCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "image", Short: "work with the sandbox's image registry"}

	var (
		spec         image.Image
		files, trees []string
		libraries    bool
	)

	push := &cobra.Command{
		Use:   "push NAME",
		Short: "make an image of files, push it, and print its reference",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := fill(&spec, files, trees, libraries); err != nil {
				return err
			}

			digest, err := image.Push(cmd.Context(), address.Registry(), args[0], spec)
			if err != nil {
				return err
			}

			fmt.Fprintln(cmd.OutOrStdout(), image.Reference(address.Registry(), args[0], digest)) //nolint:errcheck // the only output

			return nil
		},
	}
	flags := push.Flags()
	flags.StringArrayVar(&files, "file", nil, "a file to put in: <path in the image>=<file>")
	flags.StringArrayVar(&trees, "tree", nil, "a folder to put in: <path in the image>=<folder>")
	flags.BoolVar(&libraries, "libraries", false, "put in the shared libraries of the files too")
	flags.StringArrayVar(&spec.Entrypoint, "entrypoint", nil, "the program and its first arguments, one flag each")
	flags.StringVar(&spec.User, "user", "", "uid:gid to run as")
	flags.StringArrayVar(&spec.Env, "env", nil, "an environment variable: NAME=value")
	cmd.AddCommand(push)

	return cmd
}

func fill(spec *image.Image, files, trees []string, libraries bool) error {
	for _, pair := range trees {
		path, source, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("tree %q: %w", pair, errPair)
		}

		spec.Trees = append(spec.Trees, image.Tree{Path: path, Source: source})
	}

	for _, pair := range files {
		path, source, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("file %q: %w", pair, errPair)
		}

		spec.Files = append(spec.Files, image.File{Path: path, Source: source})

		if !libraries {
			continue
		}

		needed, err := image.Libraries(source)
		if err != nil {
			return err
		}

		spec.Files = append(spec.Files, needed...)
	}

	return nil
}
