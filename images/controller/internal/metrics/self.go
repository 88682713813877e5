package metrics

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/metrics"
	"github.com/deckhouse/system-s3/lib/version"
)

// component is the label by which the controller's share of a metric is told from the gateways'.
const component = "controller"

func describe(m metrics.Metric) *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}

func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Self tells the program's version and what it answers STS with.
type Self struct {
	Ring        func() (access.Ring, error)
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

var (
	buildInfo   = describe(metrics.BuildInfo)
	ringCreated = describe(metrics.KeyRingCreated)
	certExpiry  = describe(metrics.CertificateExpiry)
)

// Describe tells the metrics.
func (Self) Describe(to chan<- *prometheus.Desc) {
	to <- buildInfo
	to <- ringCreated
	to <- certExpiry
}

// Collect reads the files anew. What cannot be read is not told.
func (s Self) Collect(to chan<- prometheus.Metric) {
	to <- gauge(buildInfo, 1, component, version.String(), runtime.Version())
	if ring, err := s.Ring(); err == nil && len(ring.Keys) > 0 {
		to <- gauge(ringCreated, float64(ring.Keys[len(ring.Keys)-1].CreatedAt.Unix()), component)
	}
	if cert, err := s.Certificate(nil); err == nil && cert != nil && len(cert.Certificate) > 0 {
		if leaf, err := x509.ParseCertificate(cert.Certificate[0]); err == nil {
			to <- gauge(certExpiry, float64(leaf.NotAfter.Unix()), component)
		}
	}
}

// Exchanges counts the requests for keys.
type Exchanges struct {
	codes     *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

// NewExchanges has counted nothing yet.
func NewExchanges() *Exchanges {
	count, took := metrics.Exchanges, metrics.ExchangeDuration
	return &Exchanges{
		codes:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: count.Name, Help: count.Help}, count.Labels),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: took.Name, Help: took.Help, Buckets: took.Buckets}, took.Labels),
	}
}

// Count counts a request: refused is nil for one that got a key. Its codes are those of lib/sts, a fixed few.
func (e *Exchanges) Count(refused *access.Error, took time.Duration) {
	code, result := "OK", "issued"
	if refused != nil {
		code, result = refused.Code, resultOf(*refused)
	}
	e.codes.WithLabelValues(code).Inc()
	e.durations.WithLabelValues(result).Observe(took.Seconds())
}

// resultOf tells a request that was refused for good from one that nobody could judge.
func resultOf(refused access.Error) string {
	if refused.Status >= http.StatusInternalServerError || refused.Code == "IDPCommunicationError" {
		return "failed"
	}
	return "refused"
}

// Describe tells the metrics.
func (e *Exchanges) Describe(to chan<- *prometheus.Desc) {
	e.codes.Describe(to)
	e.durations.Describe(to)
}

// Collect tells what was counted.
func (e *Exchanges) Collect(to chan<- prometheus.Metric) {
	e.codes.Collect(to)
	e.durations.Collect(to)
}
