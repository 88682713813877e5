package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deckhouse/system-s3/images/controller/internal/page"
	"github.com/deckhouse/system-s3/lib/kube"
	"github.com/deckhouse/system-s3/lib/version"
)

// pageConnections bounds those who look, and who try to, at once.
const pageConnections = 128

// setupPage adds the status page, which every replica serves.
func setupPage(o options, mgr manager.Manager, log logr.Logger) error {
	certificates, err := certwatcher.New(filepath.Join(o.tlsDir, "tls.crt"), filepath.Join(o.tlsDir, "tls.key"))
	if err != nil {
		return fmt.Errorf("read the serving certificate: %w", err)
	}
	if err := mgr.Add(certificates); err != nil {
		return fmt.Errorf("watch the serving certificate: %w", err)
	}
	// Guessing tokens must cost the apiserver little.
	viewers, err := kube.NewReviews(mgr.GetConfig(), kube.Throughput{QPS: 20, Burst: 40})
	if err != nil {
		return err
	}
	observer := &page.Observer{Reader: mgr.GetCache(), Live: mgr.GetAPIReader(), Now: time.Now, Version: version.String()}
	handler, err := page.New(page.Config{Observe: observer.Observe, Viewers: viewers, Log: log})
	if err != nil {
		return err
	}
	err = mgr.Add(&tlsServer{
		name: "page", address: o.page, connections: pageConnections, handler: handler,
		certificate: certificates.GetCertificate, ready: make(chan struct{}),
	})
	if err != nil {
		return fmt.Errorf("add the status page: %w", err)
	}
	return nil
}
