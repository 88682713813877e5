package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/kube"
	"github.com/deckhouse/system-s3/lib/sts"
)

// setupSTS adds the STS endpoint, which every replica runs.
func setupSTS(ctx context.Context, o options, mgr manager.Manager, log logr.Logger) error {
	certificates, err := certwatcher.New(filepath.Join(o.tlsDir, "tls.crt"), filepath.Join(o.tlsDir, "tls.key"))
	if err != nil {
		return fmt.Errorf("read the serving certificate: %w", err)
	}
	if err := mgr.Add(certificates); err != nil {
		return fmt.Errorf("watch the serving certificate: %w", err)
	}
	reviews, err := kube.NewReviews(mgr.GetConfig(), kube.DefaultThroughput())
	if err != nil {
		return err
	}
	// Every replica answers STS, so every replica keeps SystemBuckets in its cache, not only the leader.
	if _, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.SystemBucket{}); err != nil {
		return fmt.Errorf("watch SystemBuckets: %w", err)
	}
	ring := func() (access.Ring, error) { return readRing(o.ringFile) }
	handler := sts.New(sts.Config{
		Reviewer: reviews, Authorizer: reviews, Buckets: kube.Buckets{Reader: mgr.GetClient()},
		Issuer: sts.RingIssuer{Ring: ring, Now: time.Now},
		Log:    log.WithName("sts"), Lifetime: o.keyLifetime, Now: time.Now,
	})
	endpoint := &stsServer{address: o.sts, handler: handler, certificate: certificates.GetCertificate, ready: make(chan struct{})}
	if err := mgr.Add(endpoint); err != nil {
		return fmt.Errorf("add the STS endpoint: %w", err)
	}
	err = mgr.AddReadyzCheck("sts", ready(func() error {
		if _, err := ring(); err != nil {
			return err
		}
		return endpoint.check()
	}))
	if err != nil {
		return fmt.Errorf("add the readiness probe: %w", err)
	}
	return nil
}

// readRing reads the signing keys from the mounted Secret. It is read for each key that is issued: the file is small, and
// a ring that was rotated is taken up without any watch that could miss it.
func readRing(file string) (access.Ring, error) {
	data, err := os.ReadFile(file) //nolint:gosec // the path is a flag
	if err != nil {
		return access.Ring{}, fmt.Errorf("read the key ring: %w", err)
	}
	ring, err := access.ParseRing(data)
	if err != nil {
		return access.Ring{}, fmt.Errorf("parse the key ring: %w", err)
	}
	return ring, nil
}
