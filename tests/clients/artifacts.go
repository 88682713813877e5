package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/deckhouse/system-s3/tests/clients/roster"
	"github.com/deckhouse/system-s3/tests/demo/awscli"
	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
)

// workshop says how what the images hold is built. It is kept by version, and by the content of what we add to it.
type workshop struct {
	// source is the folder of this Go module.
	source string
}

// needs lists what an image of the kind is made of, beside the Go program; in the order in which images.go takes it.
func (w workshop) needs(kind roster.Kind) ([]artifact.Artifact, error) {
	rclone := w.tool("rclone", roster.RcloneVersion, ".")
	plugin := w.tool("velero", roster.VeleroVersion, "github.com/vmware-tanzu/velero-plugin-for-aws/velero-plugin-for-aws")
	plugin.Name, plugin.Result = "velero-plugin-for-aws", "bin/velero-plugin-for-aws"
	ready := map[roster.Kind][]artifact.Artifact{
		roster.Program:  nil,
		roster.AWSCLI:   {awscli.Artifact()},
		roster.Rclone:   {rclone},
		roster.Restic:   {rclone, w.tool("restic", roster.ResticVersion, "github.com/restic/restic/cmd/restic")},
		roster.Registry: {w.tool("registry", roster.RegistryVersion, ".")},
	}
	if needs, known := ready[kind]; known {
		return needs, nil
	}
	ours := map[roster.Kind]made{
		roster.Boto3:      w.boto3(),
		roster.JavaScript: w.javascript(),
		roster.Java:       w.java(),
		roster.Velero:     w.own("velero", roster.VeleroVersion),
		roster.Loki:       w.own("loki", roster.LokiVersion),
		roster.AWSCLI2:    w.debian("awscli2", roster.AWSCLI2Version, "trixie", "awscli="+roster.AWSCLI2Version+"-*"),
		roster.Barman:     w.debian("barman", roster.BarmanVersion, "trixie", "barman-cli-cloud="+roster.BarmanVersion+"-*", "postgresql-17"),
		roster.PgBackRest: w.debian("pgbackrest", roster.PgBackRestVersion, "sid", "pgbackrest="+roster.PgBackRestVersion+"-*", "postgresql-18"),
	}
	first, known := ours[kind]
	if !known {
		return nil, fmt.Errorf("unknown kind of image %q", kind)
	}
	more := map[roster.Kind][]artifact.Artifact{
		roster.Boto3: {awscli.Artifact()}, roster.Java: {awscli.Artifact()}, roster.Velero: {plugin},
	}
	return w.with(first, more[kind]...)
}

// made is an artifact with the files of this module that it depends on.
type made struct {
	artifact.Artifact

	from []string
}

// with puts the content of the files into the version.
func (w workshop) with(first made, more ...artifact.Artifact) ([]artifact.Artifact, error) {
	sum := sha256.New()
	for _, name := range first.from {
		content, err := os.ReadFile(filepath.Join(w.source, name)) //nolint:gosec // the files of this module
		if err != nil {
			return nil, fmt.Errorf("read what %s is made of: %w", first.Name, err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content) //nolint:errcheck // a hash takes everything
	}
	const length = 6
	first.Version += "-" + hex.EncodeToString(sum.Sum(nil)[:length])
	return append([]artifact.Artifact{first.Artifact}, more...), nil
}

// tool is a program of others out of the Go module in thirdparty/<name>.
func (w workshop) tool(name, version, target string) artifact.Artifact {
	return artifact.Artifact{
		Name: name, Version: version, Result: filepath.Join("bin", name),
		Build: func(_, out string) artifact.Command {
			return artifact.Command{
				Dir:  filepath.Join(w.source, "thirdparty", name),
				Args: []string{"go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, target},
				Env:  []string{"CGO_ENABLED=0", "GOWORK=off"},
			}
		},
	}
}

// own is a client of our own in the Go module in thirdparty/<name>: it would not go well with the modules of others.
func (w workshop) own(name, version string) made {
	folder := filepath.Join("thirdparty", name)
	a := w.tool(name, version, ".")
	a.Name = "client-" + name
	return made{Artifact: a, from: []string{
		filepath.Join(folder, "main.go"), filepath.Join(folder, "go.mod"),
		"program/trial/main.go", "program/trial/steps.go", "program/trial/tls.go", "program/trial/trial.go",
	}}
}

// script is a folder that a script of this module makes; it gets the folder to make, and the words.
func (w workshop) script(name, version, file string, words ...string) artifact.Artifact {
	return artifact.Artifact{
		Name: "client-" + name, Version: version, Result: "tree",
		Build: func(_, out string) artifact.Command {
			return artifact.Command{Dir: "/", Args: append([]string{"bash", filepath.Join(w.source, file), out}, words...)}
		},
	}
}

func (w workshop) boto3() made {
	const file = "boto3/build.sh"
	return made{Artifact: w.script("boto3", roster.Boto3Version, file, "", roster.Boto3Version), from: []string{file}}
}

func (w workshop) javascript() made {
	const file = "javascript/build.sh"
	return made{
		Artifact: w.script("javascript", roster.JavaScriptVersion, file, filepath.Join(w.source, "javascript")),
		from:     []string{file, "javascript/package.json", "javascript/package-lock.json"},
	}
}

// java is kept by the content of its programs too, which are compiled into it.
func (w workshop) java() made {
	const file = "java/build.sh"
	return made{
		Artifact: w.script("java", roster.JavaVersion, file, filepath.Join(w.source, "java"), filepath.Join(w.source, "page")),
		from:     []string{file, "java/pom.xml", "java/Client.java", "page/Hello.java"},
	}
}

// debian is a root file system of packages of another release of Debian than the machine's.
func (w workshop) debian(name, version, release string, packages ...string) made {
	const file = "debian/rootfs.sh"
	a := w.script(name, version, file, append([]string{release}, packages...)...)
	build := a.Build
	a.Build = func(source, out string) artifact.Command {
		command := build(source, out)
		command.Made = filepath.Join(out, "rootfs")
		return command
	}
	return made{Artifact: a, from: []string{file}}
}
