package main

import (
	"crypto/tls"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deckhouse/system-s3/images/controller/internal/metrics"
	"github.com/deckhouse/system-s3/lib/kube"
)

// metricsOptions serve the metrics with TLS to those whom RBAC allows it.
func metricsOptions(o options, config *rest.Config) (server.Options, error) {
	// A few who scrape need no more; strangers must not be able to keep the apiserver busy.
	reviews, err := kube.NewReviews(config, kube.Throughput{QPS: 5, Burst: 10})
	if err != nil {
		return server.Options{}, err
	}
	return server.Options{
		BindAddress: o.metrics, SecureServing: true, CertDir: o.tlsDir, FilterProvider: metrics.Guarded(reviews),
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion, c.NextProtos = tls.VersionTLS12, []string{"http/1.1"} }},
	}, nil
}

// setupMetrics adds what every replica tells of the store, if it leads, and of itself.
func setupMetrics(mgr manager.Manager, self metrics.Self, others ...prometheus.Collector) error {
	store := metrics.Store{Reader: mgr.GetClient(), Elected: mgr.Elected(), Log: mgr.GetLogger().WithName("metrics")}
	for _, collector := range append(others, store, self) {
		if err := registry.Registry.Register(collector); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}
