package consumer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/deckhouse/system-s3/tests/demo/awscli"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/sandbox/command"
	"github.com/deckhouse/system-s3/tests/sandbox/image"
)

// PushCLI makes the image with the AWS CLI and pushes it; the reference is what Pods name.
func PushCLI(ctx context.Context, s *stage.Stage) (string, error) {
	rootfs, err := s.Builds.Ensure(ctx, awscli.Artifact())
	if err != nil {
		return "", fmt.Errorf("make the AWS CLI: %w", err)
	}
	return push(ctx, s, "demo/awscli", awscli.Image(rootfs))
}

// PushProgram builds the demo's Go program and pushes its image.
func PushProgram(ctx context.Context, s *stage.Stage) (string, error) {
	dir, err := os.MkdirTemp("", "system-s3-client-")
	if err != nil {
		return "", fmt.Errorf("make the Go program: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	program := filepath.Join(dir, "client")
	err = command.Run(ctx, "env", "CGO_ENABLED=0", "go", "build", "-C", s.Source(), "-trimpath", "-ldflags=-s -w", "-o", program, "./client")
	if err != nil {
		return "", fmt.Errorf("make the Go program: %w", err)
	}
	return push(ctx, s, "demo/client", image.Image{
		Files: []image.File{{Path: "/client", Source: program}}, Entrypoint: []string{"/client"}, User: "64535:64535",
	})
}

func push(ctx context.Context, s *stage.Stage, repository string, spec image.Image) (string, error) {
	digest, err := image.Push(ctx, s.Registry, repository, spec)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", repository, err)
	}
	return image.Reference(s.Registry, repository, digest), nil
}
