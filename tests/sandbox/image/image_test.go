package image_test

import (
	"archive/tar"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/sandbox/image"
)

// sample writes a small root file system and returns an image of it.
func sample(t *testing.T) image.Image {
	t.Helper()

	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "usr/bin"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(root, "usr/bin/tool"), []byte("tool"), 0o600))
	require.NoError(t, os.Symlink("usr/bin", filepath.Join(root, "bin")))

	return image.Image{
		Trees:      []image.Tree{{Path: "/", Source: root}},
		Files:      []image.File{{Path: "/etc/motd", Content: []byte("hello")}, {Path: "app", Source: filepath.Join(root, "usr/bin/tool")}},
		Entrypoint: []string{"/app"},
		User:       "64535:64535",
		Env:        []string{"A=b"},
	}
}

func digest(t *testing.T, i image.Image) v1.Hash {
	t.Helper()

	built, err := i.Build()
	require.NoError(t, err)

	hash, err := built.Digest()
	require.NoError(t, err)

	return hash
}

func TestEqualFilesGiveEqualDigest(t *testing.T) {
	t.Parallel()

	first, second := sample(t), sample(t)
	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(second.Files[1].Source, later, later))
	assert.Equal(t, digest(t, first), digest(t, second), "neither times nor places of the sources count")

	second.Files[0].Content = []byte("other")
	assert.NotEqual(t, digest(t, first), digest(t, second))
}

func TestPushedImageCanBePulled(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()

	host := strings.TrimPrefix(server.URL, "http://")
	pushed, err := image.Push(t.Context(), host, "system-s3/sample", sample(t))
	require.NoError(t, err)

	reference, err := name.NewDigest(image.Reference(host, "system-s3/sample", pushed), name.Insecure)
	require.NoError(t, err)

	pulled, err := remote.Image(reference, remote.WithContext(t.Context()))
	require.NoError(t, err)

	config, err := pulled.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, "64535:64535", config.Config.User)
	assert.Equal(t, "linux", config.OS)

	assert.Equal(t, map[string]string{
		"app": "-rwxr-xr-x", "bin": "L---------", "etc": "drwxr-xr-x", "etc/motd": "-rw-r--r--",
		"usr": "drwxr-x---", "usr/bin": "drwxr-x---", "usr/bin/tool": "-rw-------",
	}, members(t, pulled))
}

// members lists the files of an image with their modes, links without permissions
// since those differ between systems.
func members(t *testing.T, i v1.Image) map[string]string {
	t.Helper()

	stream := mutate.Extract(i)
	defer stream.Close()

	found := map[string]string{}

	for archive := tar.NewReader(stream); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}

		require.NoError(t, err)
		assert.Zero(t, header.Uid)

		found[header.Name] = header.FileInfo().Mode().String()
		if header.Typeflag == tar.TypeSymlink {
			found[header.Name] = "L---------"
		}
	}
}

func TestLibrariesAreEnoughToRun(t *testing.T) {
	t.Parallel()

	shell, err := exec.LookPath("sh")
	require.NoError(t, err)

	files, err := image.Libraries(shell)
	require.NoError(t, err)

	var paths []string
	for _, file := range files {
		assert.FileExists(t, file.Source)

		paths = append(paths, file.Path)
	}

	assert.Contains(t, strings.Join(paths, " "), "libc.so")
	assert.Contains(t, strings.Join(paths, " "), "ld-linux")
}
