package main

import (
	"context"
	"embed"
	"fmt"
	"path/filepath"

	"github.com/deckhouse/system-s3/tests/clients/roster"
	"github.com/deckhouse/system-s3/tests/demo/awscli"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
	"github.com/deckhouse/system-s3/tests/sandbox/command"
	"github.com/deckhouse/system-s3/tests/sandbox/image"
)

const (
	consumerUser  = "64535:64535"
	programPath   = "/program"
	goExamplePath = "/hello"
)

// scripts are the clients that need no building, and the examples of the page.
//
//go:embed boto3/client.py javascript/client.mjs barman/client.sh pgbackrest/client.sh page
var scripts embed.FS

func embedded(path, name string) (image.File, error) {
	content, err := scripts.ReadFile(name)
	if err != nil {
		return image.File{}, fmt.Errorf("read a script: %w", err)
	}
	return image.File{Path: path, Content: content}, nil
}

// images makes and pushes images, each once.
type images struct {
	stage    *stage.Stage
	workshop workshop
	// program and example are the Go program of the matrix and that of the page.
	program, example string
	known            map[roster.Kind]string
}

// source is the folder of this Go module.
func source(builds *artifact.Store) string { return filepath.Join(builds.Source(), "..", "clients") }

// build makes the Go programs, which most images hold. The folder is temporary.
func (i *images) build(ctx context.Context, dir string) error {
	i.known = map[roster.Kind]string{}
	i.program, i.example = filepath.Join(dir, "program"), filepath.Join(dir, "hello")
	for target, out := range map[string]string{"./program": i.program, "./page": i.example} {
		err := command.Run(ctx, "env", "CGO_ENABLED=0", "go", "build", "-C", i.workshop.source, "-trimpath", "-ldflags=-s -w", "-o", out, target)
		if err != nil {
			return fmt.Errorf("build the Go clients: %w", err)
		}
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
	built, err := ensure(ctx, i.stage.Builds, i.workshop, kind)
	if err != nil {
		return image.Image{}, err
	}
	program := image.File{Path: programPath, Source: i.program}
	switch kind {
	case roster.AWSCLI, roster.AWSCLI2:
		return onRoot(built[0], program, "page/hello.sh", programPath)
	case roster.Boto3:
		return boto3(built)
	case roster.JavaScript:
		return javascript(built[0])
	case roster.Java:
		return java(built)
	case roster.Barman, roster.PgBackRest:
		return onRoot(built[0], program, string(kind)+"/client.sh", "/usr/bin/bash", "/client.sh")
	case roster.Velero, roster.Loki:
		return static(built, built[0]), nil
	case roster.Program, roster.Rclone, roster.Restic, roster.Registry:
		return static(append(built, i.program, i.example), i.program), nil
	default:
		return image.Image{}, fmt.Errorf("unknown kind of image %q", kind)
	}
}

// ensure builds what an image of the kind is made of and returns the paths.
func ensure(ctx context.Context, builds *artifact.Store, w workshop, kind roster.Kind) ([]string, error) {
	needs, err := w.needs(kind)
	if err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(needs))
	for _, need := range needs {
		path, err := builds.Ensure(ctx, need)
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", need.Name, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// static holds programs that need no other files, each at the root.
func static(programs []string, first string) image.Image {
	spec := image.Image{
		Entrypoint: []string{"/" + filepath.Base(first)}, User: consumerUser, Env: []string{"HOME=/tmp", "PATH=/"},
	}
	for _, path := range programs {
		spec.Files = append(spec.Files, image.File{Path: "/" + filepath.Base(path), Source: path})
	}
	return spec
}

// onRoot is a root file system with the Go program and a script.
func onRoot(rootfs string, program image.File, script string, entrypoint ...string) (image.Image, error) {
	file, err := embedded("/"+filepath.Base(script), script)
	spec := awscli.Image(rootfs)
	spec.Files, spec.Entrypoint = append(spec.Files, program, file), entrypoint
	return spec, err
}

// boto3 runs on the Python of the AWS CLI.
func boto3(built []string) (image.Image, error) {
	client, err := embedded("/client.py", "boto3/client.py")
	if err != nil {
		return image.Image{}, err
	}
	example, err := embedded("/hello.py", "page/hello.py")
	spec := awscli.Image(built[1])
	spec.Files = append(spec.Files, client, example)
	spec.Trees = append(spec.Trees, image.Tree{Path: "/opt/boto3", Source: built[0]})
	spec.Env = append(spec.Env, "PYTHONPATH=/opt/boto3")
	spec.Entrypoint = []string{"/usr/bin/python3", client.Path}
	return spec, err
}

func javascript(folder string) (image.Image, error) {
	libraries, err := image.Libraries(filepath.Join(folder, "bin", "node"))
	if err != nil {
		return image.Image{}, fmt.Errorf("find what Node.js needs: %w", err)
	}
	client, err := embedded("/app/client.mjs", "javascript/client.mjs")
	if err != nil {
		return image.Image{}, err
	}
	example, err := embedded("/app/hello.mjs", "page/hello.mjs")
	return image.Image{
		Files: append(libraries, client, example), Trees: []image.Tree{{Path: "/app", Source: folder}},
		Entrypoint: []string{"/app/bin/node", client.Path}, User: consumerUser, Env: []string{"HOME=/tmp"},
	}, err
}

// java starts as the page says, in the shell of the AWS CLI's root file system.
func java(built []string) (image.Image, error) {
	start, err := embedded("/java.sh", "page/java.sh")
	spec := awscli.Image(built[1])
	spec.Files = append(spec.Files, start)
	spec.Trees = append(spec.Trees, image.Tree{Path: "/app", Source: built[0]})
	spec.Env = []string{"PATH=/usr/bin:/bin:/app/runtime/bin", "LD_LIBRARY_PATH=/app/runtime/lib", "HOME=/tmp"}
	spec.Entrypoint = []string{"/usr/bin/bash", "-eu", start.Path, "Client"}
	return spec, err
}
