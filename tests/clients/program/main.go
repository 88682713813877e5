// Command program is the consumers of the client matrix that are written in Go, and the driver of those that are
// programs. Its first word is the client, the rest are the matrix's parameters.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/deckhouse/system-s3/tests/clients/program/gov2"
	"github.com/deckhouse/system-s3/tests/clients/program/minio"
	"github.com/deckhouse/system-s3/tests/clients/program/thanos"
	"github.com/deckhouse/system-s3/tests/clients/program/tool"
	"github.com/deckhouse/system-s3/tests/clients/program/trial"
)

var errUsage = errors.New("want CLIENT PREFIX LARGE LISTED MANY PAST")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, words []string) error {
	if len(words) < 1 {
		return errUsage
	}
	p, err := trial.Parse(words[1:])
	if err != nil {
		return err
	}
	if words[0] == "seed" {
		return seed(ctx, p)
	}
	client, err := open(ctx, words[0], p)
	if err != nil {
		return err
	}
	trial.Run(ctx, os.Stdout, p, client)
	return nil
}

func open(ctx context.Context, name string, p trial.Parameters) (trial.Client, error) {
	switch name {
	case "gov2", "gov2-path":
		return gov2.New(ctx, p, name == "gov2-path")
	case "minio":
		return minio.New(p)
	case "thanos":
		return thanos.New(p)
	case "awscli":
		return tool.AWS(p), nil
	case "rclone":
		return tool.Rclone(p), nil
	case "restic":
		return tool.Restic(ctx, p)
	case "registry":
		return tool.Registry(ctx, p)
	default:
		return trial.Client{}, fmt.Errorf("client %q: %w", name, errUsage)
	}
}

// seed stores what all the others read; its prefix is theirs, joined with commas.
func seed(ctx context.Context, p trial.Parameters) error {
	life, err := gov2.Seed(ctx, p, strings.Split(p.Prefix, ","))
	if err != nil {
		return fmt.Errorf("store objects: %w", err)
	}
	fmt.Fprintf(os.Stdout, "life\tok\t%s\n", life) //nolint:errcheck // there is nobody else to tell
	return nil
}
