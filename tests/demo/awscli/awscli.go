// Package awscli makes the container image with the real AWS CLI that the demo's first consumer runs.
package awscli

import (
	_ "embed"
	"path/filepath"

	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
	"github.com/deckhouse/system-s3/tests/sandbox/image"
)

// version of the AWS CLI on PyPI.
const version = "1.46.3"

//go:embed rootfs.sh
var script string

// Artifact is the root file system of the image, made once for a machine.
func Artifact() artifact.Artifact {
	return artifact.Artifact{
		Name:    "awscli",
		Version: version,
		Result:  "rootfs",
		Build: func(_, out string) artifact.Command {
			return artifact.Command{
				Dir:  "/",
				Args: []string{"bash", "-c", script, "rootfs.sh", out, version},
				Made: filepath.Join(out, "rootfs"),
			}
		},
	}
}

// Image is the image of a root file system.
func Image(rootfs string) image.Image {
	return image.Image{
		Trees:      []image.Tree{{Path: "/", Source: rootfs}},
		Entrypoint: []string{"/usr/bin/bash", "-eu", "-o", "pipefail", "-c"},
		User:       "64535:64535",
		Env:        []string{"PATH=/usr/bin:/bin", "HOME=/tmp"},
	}
}
