// Package registry is the image registry of the sandbox: the nodes pull from it
// as they would from a real one.
package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

const (
	folderMode    = 0o700
	fileMode      = 0o600
	headerTimeout = 10 * time.Second
	manifestLimit = 4 << 20
)

// stored is a manifest as it was pushed.
type stored struct {
	Path        string `json:"path"`
	ContentType string `json:"contentType"`
	Body        []byte `json:"body"`
}

// NewHandler returns a registry that keeps its content in the folder. The library
// keeps manifests in memory only: they are written down here and pushed again at
// the start.
func NewHandler(folder string) (http.Handler, error) {
	blobs, manifests := filepath.Join(folder, "blobs"), filepath.Join(folder, "manifests")
	for _, sub := range []string{blobs, manifests} {
		if err := os.MkdirAll(sub, folderMode); err != nil {
			return nil, fmt.Errorf("make the registry's folder: %w", err)
		}
	}

	inner := registry.New(
		registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)),
		registry.Logger(log.New(io.Discard, "", 0)),
	)
	if err := replay(inner, manifests); err != nil {
		return nil, err
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/manifests/") {
			inner.ServeHTTP(w, r)

			return
		}

		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, manifestLimit))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)

			return
		}

		s := stored{Path: r.URL.Path, ContentType: r.Header.Get("Content-Type"), Body: body}
		if err := s.keep(manifests); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)

			return
		}

		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(w, r)
	}), nil
}

// keep writes the manifest under its tag and under its digest: a digest stays good
// when the tag moves on.
func (s stored) keep(folder string) error {
	if err := s.write(folder); err != nil {
		return err
	}

	sum := sha256.Sum256(s.Body)
	s.Path = path.Join(path.Dir(s.Path), "sha256:"+hex.EncodeToString(sum[:]))

	return s.write(folder)
}

func (s stored) write(folder string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode a manifest: %w", err)
	}

	sum := sha256.Sum256([]byte(s.Path))
	file := filepath.Join(folder, hex.EncodeToString(sum[:])+".json")

	if err := os.WriteFile(file+".new", data, fileMode); err != nil {
		return fmt.Errorf("write a manifest: %w", err)
	}

	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("write a manifest: %w", err)
	}

	return nil
}

func replay(to http.Handler, folder string) error {
	files := os.DirFS(folder)

	names, err := fs.Glob(files, "*.json")
	if err != nil {
		return fmt.Errorf("list the manifests: %w", err)
	}

	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("read a manifest: %w", err)
		}

		var s stored
		if err := json.Unmarshal(data, &s); err != nil {
			return fmt.Errorf("decode %s: %w", name, err)
		}

		request := httptest.NewRequest(http.MethodPut, s.Path, bytes.NewReader(s.Body))
		request.Header.Set("Content-Type", s.ContentType)
		// A manifest whose blobs never arrived is refused: as well as not pushed.
		to.ServeHTTP(httptest.NewRecorder(), request)
	}

	return nil
}

// Serve answers on the address until the context ends.
func Serve(ctx context.Context, address, folder string) error {
	handler, err := NewHandler(folder)
	if err != nil {
		return err
	}

	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: headerTimeout}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })

	defer stop()

	if err := server.ListenAndServe(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the registry: %w", err)
	}

	return nil
}
