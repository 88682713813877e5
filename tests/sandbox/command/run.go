// Package command runs the system's tools and keeps what they said for the error.
package command

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Run runs a tool to its end. Its output is in the error when it fails.
func Run(ctx context.Context, name string, args ...string) error {
	_, err := Output(ctx, name, args...)

	return err
}

// Output runs a tool to its end and returns what it wrote to standard output.
// The output is in the error when the tool fails.
func Output(ctx context.Context, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer

	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr

	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(stderr.String() + stdout.String())

		return stdout.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said)
	}

	return stdout.String(), nil
}
