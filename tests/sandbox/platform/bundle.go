package platform

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
)

// bundled are the parts of the checkout that a release of the module carries, besides
// the hooks, which it carries built. What is absent is left out.
func bundled() []string {
	return []string{
		"module.yaml", "Chart.yaml", ".helmignore", "values.yaml", "oss.yaml",
		"charts", "crds", "monitoring", "openapi", "templates",
	}
}

// Bundle assembles a modules directory with the module's release, built from the
// checkout, as Deckhouse would unpack it, and the static values beside it. It returns
// the path of the directory, which is not yet the one that addon-operator reads.
func Bundle(ctx context.Context, env Env, digests map[string]string) (string, error) {
	def, err := ReadDefinition(env.Checkout)
	if err != nil {
		return "", err
	}

	fresh := env.path("modules.new")
	if err := os.RemoveAll(fresh); err != nil {
		return "", fmt.Errorf("assemble bundle: %w", err)
	}

	if err := assemble(ctx, env, filepath.Join(fresh, def.Folder())); err != nil {
		return "", err
	}

	values, err := yaml.Marshal(env.staticValues(def, digests))
	if err != nil {
		return "", fmt.Errorf("write static values: %w", err)
	}

	return fresh, wrap("write static values", os.WriteFile(filepath.Join(fresh, "values.yaml"), values, privateFile))
}

func assemble(ctx context.Context, env Env, into string) error {
	for _, part := range bundled() {
		if err := copyTree(filepath.Join(env.Checkout, part), filepath.Join(into, part)); err != nil {
			return fmt.Errorf("assemble bundle: %w", err)
		}
	}

	hooks := filepath.Join(env.Checkout, "hooks")
	if _, err := os.Stat(hooks); errors.Is(err, os.ErrNotExist) {
		return nil
	}

	return buildGo(ctx, build{dir: env.Checkout, pkg: "./hooks", out: filepath.Join(into, "hooks", "go-hooks")})
}

// build is one static program to compile from the checkout.
type build struct {
	dir, pkg, out string
	env           []string // over the process's own
}

// buildFlags are those that .werf/defines/golang.tmpl builds with, and a version of our own.
func buildFlags() []string {
	const stamp = "-X github.com/deckhouse/system-s3/lib/version.stamp=sandbox"

	return []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid= " + stamp}
}

// buildGo compiles a program of the checkout the way its images do: static, without
// paths of this machine in it. An unchanged program is a matter of seconds.
func buildGo(ctx context.Context, b build) error {
	if err := os.MkdirAll(filepath.Dir(b.out), privateDir); err != nil {
		return fmt.Errorf("build %s: %w", b.pkg, err)
	}

	args := append(append([]string{"go", "build"}, buildFlags()...), "-o", b.out, b.pkg)
	cmd := exec.CommandContext(ctx, "nice", args...) //nolint:gosec // The arguments are this package's own.
	cmd.Dir = b.dir
	cmd.Env = append(append(os.Environ(), "PATH="+artifact.ToolPath(), "CGO_ENABLED=0", "GOWORK=off"), b.env...)

	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", b.pkg, err, output)
	}

	return nil
}

// replaceDir puts the fresh folder in the place of the old one.
func replaceDir(fresh, old string) error {
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("replace %s: %w", old, err)
	}

	return wrap("replace "+old, os.Rename(fresh, old))
}

// copyTree copies a file or a folder; nothing there is nothing to copy. Tests and
// snapshots of the checkout are not part of a release.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) && path == from {
			return nil
		}

		if err != nil {
			return err
		}

		if entry.IsDir() || strings.HasSuffix(path, "_test.go") || filepath.Ext(path) == ".go" {
			return nil
		}

		relative, err := filepath.Rel(from, path)
		if err != nil {
			return fmt.Errorf("copy %s: %w", path, err)
		}

		return copyFile(path, filepath.Join(to, relative))
	})
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), privateDir); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}

	data, err := os.ReadFile(from) //nolint:gosec // A file of the checkout.
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}

	return wrap("copy "+from, os.WriteFile(to, data, privateFile)) //nolint:gosec // A file of the state directory.
}

// fingerprint is a digest of all files below the folder: two equal ones are the same release.
func fingerprint(dir string) (string, error) {
	sum := sha256.New()

	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		fmt.Fprintln(sum, strings.TrimPrefix(path, dir)) //nolint:errcheck // A hash does not fail.

		file, err := os.Open(path) //nolint:gosec // A file of the state directory.
		if err != nil {
			return fmt.Errorf("open %s: %w", path, err)
		}
		defer file.Close() //nolint:errcheck // Only read.

		_, err = io.Copy(sum, file)

		return wrap("read "+path, err)
	})
	if err != nil {
		return "", fmt.Errorf("fingerprint bundle: %w", err)
	}

	return hex.EncodeToString(sum.Sum(nil)), nil
}
