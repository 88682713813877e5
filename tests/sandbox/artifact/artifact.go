// Package artifact builds what the sandbox is made of and does not write itself:
// Kubernetes, CoreDNS, Garage and so on. Builds are long, so each is kept by its
// version outside the checkout and made once for a machine.
package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const folderMode = 0o755

// Artifact is one thing to build: a program, or a folder of files.
type Artifact struct {
	// Name and Version name the folder that the result is kept in.
	Name, Version string
	// Result is the path of the result inside that folder, such as bin/garage.
	Result string
	// Sources are files and folders, relative to the sandbox's source, whose
	// content the result depends on; a change there makes a build of its own. For
	// what comes from elsewhere and is pinned by Version, leave it empty.
	Sources []string
	// Build returns the command that makes the result at the path out.
	Build func(source, out string) Command
}

// Command is the build to run.
type Command struct {
	// Dir is the folder to run in.
	Dir string
	// Args is the program and its arguments.
	Args []string
	// Env is added to the caller's environment.
	Env []string
	// Made is the path of the result, when the build cannot be told where to put it;
	// it is moved to out.
	Made string
}

// Store is where built artifacts are kept.
type Store struct {
	root     string
	source   string
	noSource error // why there is no source to build from
	progress io.Writer

	mutex  sync.Mutex
	builds []Usage
}

// Usage is what a build took.
type Usage struct {
	// Name and Version are those of the artifact.
	Name, Version string
	Time          time.Duration
	// Memory is the most that the build's processes held together, in bytes, as far as
	// a look every second shows.
	Memory int64
}

// ErrNoSource means that there is nothing to build from.
var ErrNoSource = errors.New("the sandbox's source is not here: run inside the checkout or set SANDBOX_SOURCE")

var errBuild = errors.New("build failed")

// NewStore returns the store of the current user. Progress lines go to progress.
// Without the sandbox's source it only finds what is built.
func NewStore(progress io.Writer) (*Store, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the cache folder: %w", err)
	}

	source, err := findSource()

	return &Store{root: filepath.Join(cache, "system-s3"), source: source, noSource: err, progress: progress}, nil
}

// findSource looks for the folder of the sandbox's Go module: from the working
// folder upwards, because the programs to build are in the checkout.
func findSource() (string, error) {
	if set := os.Getenv("SANDBOX_SOURCE"); set != "" {
		return set, nil
	}

	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the sandbox's source: %w", err)
	}

	for {
		candidate := filepath.Join(dir, "tests", "sandbox")
		if _, err := os.Stat(filepath.Join(candidate, "thirdparty")); err == nil {
			return candidate, nil
		}

		parent := filepath.Dir(dir)
		if parent == dir {
			return "", ErrNoSource
		}

		dir = parent
	}
}

// Source is the folder of the sandbox's Go module; empty outside of the checkout.
func (s *Store) Source() string { return s.source }

// Builds lists what was built since the store was opened.
func (s *Store) Builds() []Usage {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	return slices.Clone(s.builds)
}

// Path is where the artifact's result is, or will be.
func (s *Store) Path(a Artifact) (string, error) {
	version := a.Version

	if len(a.Sources) > 0 {
		if s.noSource != nil {
			return "", s.noSource
		}

		sum, err := digest(s.source, a.Sources)
		if err != nil {
			return "", err
		}

		version += "-" + sum
	}

	return filepath.Join(s.root, a.Name+"-"+version, a.Result), nil
}

// Ensure returns the path of the result, building it first when it is missing.
// Two callers at once build it once.
func (s *Store) Ensure(ctx context.Context, a Artifact) (string, error) {
	path, err := s.Path(a)
	if err != nil {
		return "", err
	}

	if exists(path) {
		return path, nil
	}

	unlock, err := s.lock(ctx, a)
	if err != nil {
		return "", err
	}
	defer unlock()

	if exists(path) {
		return path, nil
	}

	return path, s.build(ctx, a, path)
}

func (s *Store) build(ctx context.Context, a Artifact, path string) error {
	if s.noSource != nil {
		return fmt.Errorf("build %s: %w", a.Name, s.noSource)
	}

	folder := filepath.Join(s.root, a.Name+"-"+a.Version)
	if err := os.MkdirAll(filepath.Dir(path), folderMode); err != nil {
		return fmt.Errorf("make the folder of %s: %w", a.Name, err)
	}

	// The result gets its name when it is whole, so that a killed build is not
	// mistaken for a finished one.
	partial := folder + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("clear the last attempt of %s: %w", a.Name, err)
	}

	command := a.Build(s.source, partial)
	if command.Made == "" {
		command.Made = partial
	}

	if err := s.run(ctx, a, command); err != nil {
		return err
	}

	if err := os.Rename(command.Made, path); err != nil {
		return fmt.Errorf("keep %s: %w", a.Name, err)
	}

	return os.RemoveAll(partial)
}

func exists(path string) bool {
	_, err := os.Stat(path)

	return err == nil
}
