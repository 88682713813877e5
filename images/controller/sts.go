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

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/metrics"
	"github.com/deckhouse/system-s3/images/controller/internal/revocation"
	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/kube"
	"github.com/deckhouse/system-s3/lib/sts"
)

// setupSTS adds the STS endpoint, which every replica runs, and returns what there is to tell of it.
func setupSTS(ctx context.Context, o options, mgr manager.Manager, exchanges *metrics.Exchanges) (metrics.Self, error) {
	log := mgr.GetLogger()
	certificates, err := certwatcher.New(filepath.Join(o.tlsDir, "tls.crt"), filepath.Join(o.tlsDir, "tls.key"))
	if err != nil {
		return metrics.Self{}, fmt.Errorf("read the serving certificate: %w", err)
	}
	if err := mgr.Add(certificates); err != nil {
		return metrics.Self{}, fmt.Errorf("watch the serving certificate: %w", err)
	}
	// The endpoint bounds the exchanges in flight, and the apiserver has its own fair queues.
	reviews, err := kube.NewReviews(mgr.GetConfig(), kube.Unlimited())
	if err != nil {
		return metrics.Self{}, err
	}
	// Every replica answers STS, so every replica keeps SystemBuckets in its cache, not only the leader.
	if _, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.SystemBucket{}); err != nil {
		return metrics.Self{}, fmt.Errorf("watch SystemBuckets: %w", err)
	}
	ring := func() (access.Ring, error) { return readRing(o.ringFile) }
	ledger, err := setupRevocation(o, mgr, log.WithName("revocation"))
	if err != nil {
		return metrics.Self{}, err
	}
	handler := sts.New(sts.Config{
		Reviewer: reviews, Authorizer: reviews, Buckets: kube.Buckets{Reader: mgr.GetClient()},
		Issuer: sts.RingIssuer{Ring: ring, Now: time.Now}, Issued: ledger.Note, Answered: exchanges.Count,
		Log: log.WithName("sts"), Lifetime: o.keyLifetime, Now: time.Now,
	})
	endpoint := &tlsServer{
		name: "sts", address: o.sts, connections: maxConnections, handler: handler,
		certificate: certificates.GetCertificate, ready: make(chan struct{}),
	}
	if err := mgr.Add(endpoint); err != nil {
		return metrics.Self{}, fmt.Errorf("add the STS endpoint: %w", err)
	}
	err = mgr.AddReadyzCheck("sts", ready(func() error {
		if _, err := ring(); err != nil {
			return err
		}
		return endpoint.check()
	}))
	if err != nil {
		return metrics.Self{}, fmt.Errorf("add the readiness probe: %w", err)
	}
	return metrics.Self{Ring: ring, Certificate: certificates.GetCertificate}, nil
}

// setupRevocation adds what takes keys back: the memory of every replica, and the review that the leader makes.
func setupRevocation(o options, mgr manager.Manager, log logr.Logger) (*revocation.Ledger, error) {
	// Reviews of those who have keys must not hold up those who want one.
	reviews, err := kube.NewReviews(mgr.GetConfig(), kube.Throughput{QPS: 200, Burst: 200})
	if err != nil {
		return nil, err
	}
	pace := revocation.PaceFor(o.keyLifetime)
	ledger := revocation.NewLedger(pace.Slot, time.Now)
	for _, runnable := range []manager.Runnable{
		&revocation.Recorder{
			Ledger: ledger, Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(), Pace: pace, Now: time.Now, Log: log,
		},
		&revocation.Reviewer{
			Reader: mgr.GetAPIReader(), Authorizer: reviews, Pace: pace, Now: time.Now, Log: log,
			Publisher: &revocation.Push{Reader: mgr.GetClient(), Gateways: &backend.Gateways{}, Log: log},
		},
	} {
		if err := mgr.Add(runnable); err != nil {
			return nil, fmt.Errorf("add the revocation of keys: %w", err)
		}
	}
	return ledger, nil
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
