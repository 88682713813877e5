// Package command runs the system's tools and keeps what they said for the error.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

const (
	// quickLimit is far more than any tool takes that only talks to the kernel.
	quickLimit = time.Minute
	// outputGrace is how long children of an ended tool may hold its output open.
	outputGrace = 5 * time.Second
)

var errSlow = errors.New("it took longer than a minute")

// Run runs a tool to its end. Its output is in the error when it fails.
func Run(ctx context.Context, name string, args ...string) error {
	_, err := Output(ctx, name, args...)

	return err
}

// Quick runs a tool that has nothing to wait for, a minute at most.
func Quick(ctx context.Context, name string, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, quickLimit, errSlow)
	defer cancel()

	return Run(ctx, name, args...)
}

// Output runs a tool to its end and returns what it wrote to standard output.
// The output is in the error when the tool fails.
func Output(ctx context.Context, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer

	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // running the caller's tool is what this is for; no shell between
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = outputGrace

	err := cmd.Run()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}

	if err != nil {
		said := strings.TrimSpace(stderr.String() + stdout.String())

		return stdout.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said)
	}

	return stdout.String(), nil
}
