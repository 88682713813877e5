package main

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"

	"github.com/deckhouse/system-s3/tests/clients/roster"
	"github.com/deckhouse/system-s3/tests/demo/awscli"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
	"github.com/deckhouse/system-s3/tests/sandbox/command"
	"github.com/deckhouse/system-s3/tests/sandbox/image"
)

const consumerUser = "64535:64535"

//go:embed boto3/client.py
var boto3Client []byte

// images makes and pushes images, each once.
type images struct {
	stage   *stage.Stage
	program string
	known   map[roster.Kind]string
}

// source is the folder of this Go module.
func source(s *stage.Stage) string { return filepath.Join(s.Builds.Source(), "..", "clients") }

// build makes the Go program, which most images hold. The folder is temporary.
func (i *images) build(ctx context.Context, dir string) error {
	i.known = map[roster.Kind]string{}
	i.program = filepath.Join(dir, "program")
	err := command.Run(ctx, "env", "CGO_ENABLED=0", "go", "build", "-C", source(i.stage), "-trimpath", "-ldflags=-s -w", "-o", i.program, "./program")
	if err != nil {
		return fmt.Errorf("build the Go clients: %w", err)
	}
	return nil
}

// reference is what Pods name, after the image has been made.
func (i *images) reference(ctx context.Context, kind roster.Kind) (string, error) {
	if known := i.known[kind]; known != "" {
		return known, nil
	}
	spec, err := i.spec(ctx, kind)
	if err != nil {
		return "", fmt.Errorf("make image %s: %w", kind, err)
	}
	repository := "clients/" + string(kind)
	digest, err := image.Push(ctx, i.stage.Registry, repository, spec)
	if err != nil {
		return "", fmt.Errorf("push image %s: %w", kind, err)
	}
	i.known[kind] = image.Reference(i.stage.Registry, repository, digest)
	return i.known[kind], nil
}

func (i *images) spec(ctx context.Context, kind roster.Kind) (image.Image, error) {
	switch kind {
	case roster.AWSCLI:
		return i.onPython(ctx, image.File{Path: "/program", Source: i.program}, "/program")
	case roster.Boto3:
		return i.boto3(ctx)
	case roster.Rclone, roster.Program:
		return i.static(ctx, kind)
	default:
		return image.Image{}, fmt.Errorf("unknown kind of image %q", kind)
	}
}

// static holds programs that need no other files.
func (i *images) static(ctx context.Context, kind roster.Kind) (image.Image, error) {
	spec := image.Image{
		Files: []image.File{{Path: "/program", Source: i.program}}, Entrypoint: []string{"/program"}, User: consumerUser,
		Env: []string{"HOME=/tmp", "PATH=/"},
	}
	tools := map[roster.Kind][]artifact.Artifact{
		roster.Rclone: {rclone()},
	}
	for _, tool := range tools[kind] {
		path, err := i.stage.Builds.Ensure(ctx, tool)
		if err != nil {
			return spec, fmt.Errorf("build %s: %w", tool.Name, err)
		}
		spec.Files = append(spec.Files, image.File{Path: "/" + filepath.Base(path), Source: path})
	}
	return spec, nil
}

// onPython is the root file system of the AWS CLI, which holds Python, with one file more.
func (i *images) onPython(ctx context.Context, file image.File, entrypoint ...string) (image.Image, error) {
	rootfs, err := i.stage.Builds.Ensure(ctx, awscli.Artifact())
	if err != nil {
		return image.Image{}, fmt.Errorf("make the AWS CLI: %w", err)
	}
	spec := awscli.Image(rootfs)
	spec.Files, spec.Entrypoint = append(spec.Files, file), entrypoint
	return spec, nil
}

func (i *images) boto3(ctx context.Context) (image.Image, error) {
	packages, err := i.stage.Builds.Ensure(ctx, boto3())
	if err != nil {
		return image.Image{}, fmt.Errorf("make boto3: %w", err)
	}
	const script = "/client.py"
	spec, err := i.onPython(ctx, image.File{Path: script, Content: boto3Client}, "/usr/bin/python3", script)
	spec.Trees = append(spec.Trees, image.Tree{Path: "/opt/boto3", Source: packages})
	spec.Env = append(spec.Env, "PYTHONPATH=/opt/boto3")
	return spec, err
}
