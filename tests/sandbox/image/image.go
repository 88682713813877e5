// Package image makes container images out of files, without Docker, and pushes
// them to a registry. Equal files give an equal image with an equal digest.
package image

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image describes an image of one layer.
type Image struct {
	// Files are single files to put in.
	Files []File
	// Trees are whole folders to put in.
	Trees []Tree
	// Entrypoint is the program and its first arguments.
	Entrypoint []string
	// User is "uid:gid"; empty is root.
	User string
	// Env are "NAME=value" lines.
	Env []string
	// WorkingDir is the folder that the program starts in; empty is /.
	WorkingDir string
}

// File is one file of an image.
type File struct {
	// Path is where it is in the image.
	Path string
	// Source is the file on this machine. When empty, Content is taken.
	Source string
	// Content is the file's content when there is no Source.
	Content []byte
	// Mode holds the permissions; zero means 0755 for what has a Source and may be a
	// program, 0644 for the rest.
	Mode fs.FileMode
}

// Tree is a folder of this machine that is put into an image with everything
// below, its symbolic links and permissions kept, all owned by root.
type Tree struct {
	// Path is where the folder is in the image; "/" for a root file system.
	Path string
	// Source is the folder on this machine.
	Source string
}

// Build makes the image. The sources are read again when it is pushed: they must
// not change in between.
func (i Image) Build() (v1.Image, error) {
	entries, err := i.entries()
	if err != nil {
		return nil, err
	}

	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return archive(entries), nil },
		tarball.WithMediaType(types.OCILayer),
	)
	if err != nil {
		return nil, fmt.Errorf("make the layer: %w", err)
	}

	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)

	withLayer, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, fmt.Errorf("append the layer: %w", err)
	}

	file, err := withLayer.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the image's configuration: %w", err)
	}

	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", architecture
	file.Config.Entrypoint, file.Config.User = i.Entrypoint, i.User
	file.Config.Env, file.Config.WorkingDir = i.Env, i.WorkingDir

	built, err := mutate.ConfigFile(withLayer, file)
	if err != nil {
		return nil, fmt.Errorf("configure the image: %w", err)
	}

	return built, nil
}

// Push builds the image and pushes it to the registry (host:port, plain HTTP) as
// name:latest. It returns the digest ("sha256:..."), so that
// <registry>/<name>@<digest> is this very image. What the registry has already
// is not sent again.
func Push(ctx context.Context, registry, repository string, spec Image) (string, error) {
	built, err := spec.Build()
	if err != nil {
		return "", fmt.Errorf("build image %s: %w", repository, err)
	}

	tag, err := name.NewTag(path.Join(registry, repository)+":latest", name.Insecure)
	if err != nil {
		return "", fmt.Errorf("name image %s: %w", repository, err)
	}

	if err := remote.Write(tag, built, remote.WithContext(ctx)); err != nil {
		return "", fmt.Errorf("push image %s: %w", repository, err)
	}

	digest, err := built.Digest()
	if err != nil {
		return "", fmt.Errorf("digest of image %s: %w", repository, err)
	}

	return digest.String(), nil
}

// Reference is the name by which Pods pull a pushed image.
func Reference(registry, repository, digest string) string {
	return path.Join(registry, repository) + "@" + digest
}
