// Package secret holds what the gateway reads from mounted Secrets: the key ring and the serving certificate, which
// rotate, and the plane's seed and admin token, which never change.
package secret

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/deckhouse/system-s3/lib/access"
)

// Watched is what some files say now. Safe for concurrent use.
type Watched[T any] struct {
	what    string
	paths   []string
	parse   func(files []string) (T, error)
	log     *zap.Logger
	current atomic.Pointer[T]
	read    []string // the files that current was made of
	trouble string   // the last error, so that it is told once
}

// OpenRing reads the key ring.
func OpenRing(path string, log *zap.Logger) (*Watched[access.Ring], error) {
	return open(&Watched[access.Ring]{
		what: "key ring", paths: []string{path}, log: log,
		parse: func(files []string) (access.Ring, error) { return access.ParseRing([]byte(files[0])) },
	})
}

// OpenCertificate reads a serving certificate with its chain and its key, both PEM.
func OpenCertificate(certPath, keyPath string, log *zap.Logger) (*Watched[tls.Certificate], error) {
	return open(&Watched[tls.Certificate]{
		what: "serving certificate", paths: []string{certPath, keyPath}, log: log,
		parse: func(files []string) (tls.Certificate, error) {
			return tls.X509KeyPair([]byte(files[0]), []byte(files[1]))
		},
	})
}

// open reads for the first time; without a usable content the gateway could serve nobody.
func open[T any](w *Watched[T]) (*Watched[T], error) {
	files, value, err := w.load()
	if err != nil {
		return nil, fmt.Errorf("read the %s: %w", w.what, err)
	}
	w.read = files
	w.current.Store(&value)
	return w, nil
}

func (w *Watched[T]) load() (files []string, value T, err error) {
	for _, path := range w.paths {
		data, err := os.ReadFile(path) //nolint:gosec // the path is configuration, not a request's
		if err != nil {
			return nil, value, err
		}
		files = append(files, string(data))
	}
	value, err = w.parse(files)
	return files, value, err
}

// Current is what was last read.
func (w *Watched[T]) Current() T { return *w.current.Load() }

// Watch reads the files anew every period until the context ends. The kubelet replaces Secret files by swapping a
// symlink, which notifications on the files themselves would miss; the files are small.
func (w *Watched[T]) Watch(ctx context.Context, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.reload()
		}
	}
}

// reload keeps what is in use when the files cannot be used, or are just being replaced: clients must go on working.
func (w *Watched[T]) reload() {
	files, value, err := w.load()
	if err != nil {
		if w.trouble != err.Error() {
			w.log.Warn("the "+w.what+" cannot be read, going on with the one in use", zap.Error(err))
		}
		w.trouble = err.Error()
		return
	}
	w.trouble = ""
	if slices.Equal(files, w.read) {
		return
	}
	w.read = files
	w.current.Store(&value)
	w.log.Info("the " + w.what + " has changed")
}
