package main

import (
	"path/filepath"

	"github.com/deckhouse/system-s3/tests/clients/roster"
	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
)

// goTool is a program of the Go module in thirdparty/<name>.
func goTool(name, version, target string) artifact.Artifact {
	return artifact.Artifact{
		Name: name, Version: version, Result: filepath.Join("bin", name),
		Build: func(sandbox, out string) artifact.Command {
			return artifact.Command{
				Dir:  filepath.Join(sandbox, "..", "clients", "thirdparty", name),
				Args: []string{"go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, target},
				Env:  []string{"CGO_ENABLED=0"},
			}
		},
	}
}

func rclone() artifact.Artifact { return goTool("rclone", "1.76.0", ".") }

// script is a folder made by <folder>/build.sh of this module.
func script(name, version string) artifact.Artifact {
	return artifact.Artifact{
		Name: "client-" + name, Version: version, Result: "tree",
		Build: func(sandbox, out string) artifact.Command {
			folder := filepath.Join(sandbox, "..", "clients", name)
			return artifact.Command{Dir: "/", Args: []string{"bash", filepath.Join(folder, "build.sh"), out, folder, version}}
		},
	}
}

func boto3() artifact.Artifact { return script("boto3", roster.Boto3Version) }
