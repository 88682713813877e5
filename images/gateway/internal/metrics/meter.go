// Package metrics is what the gateway tells of itself: requests by bucket, operation and outcome, and the state of its
// parts. Counting one request takes no allocation. Labels are bounded: a bucket is named only by who has proven a key for
// it and forgotten a day after its last request, codes are those that somebody here has a word for.
package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deckhouse/system-s3/lib/metrics"
)

const (
	// OK is the code of a request that went well.
	OK = "OK"
	// ClientGone is the code of a request whose client left before the end.
	ClientGone = "ClientGone"
	// unknownCode is the code of what Garage or STS said in words that are not expected.
	unknownCode = "Other"
)

// forgetAfter is how long a bucket that nobody uses is remembered. For Prometheus a counter that begins anew is nothing
// unusual.
const forgetAfter = 24 * time.Hour

// Exchange is a request that was answered.
type Exchange struct {
	Bucket         string // proven to be the key's, else ""
	Operation      string // as S3 names it, "" when nobody knows
	Code           string // OK, ClientGone or the error's code
	Refusal        string // why the key was refused, "" when it was not
	Received, Sent int64
	Started        time.Time
}

// Meter counts requests. Safe for concurrent use. Use NewMeter.
type Meter struct {
	durations [classes]prometheus.Observer
	histogram *prometheus.HistogramVec
	now       func() time.Time

	mu      sync.RWMutex
	buckets map[string]*counts
	refused map[string]uint64
}

// counts are those of one bucket.
type counts struct {
	last               atomic.Int64 // seconds
	ok, received, sent [classes]atomic.Uint64

	mu     sync.Mutex
	failed map[failure]uint64
}

type failure struct {
	class class
	code  string
}

// NewMeter has counted nothing yet.
func NewMeter() *Meter {
	declared := metrics.RequestDuration
	m := &Meter{
		now: time.Now, buckets: map[string]*counts{}, refused: map[string]uint64{},
		histogram: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: declared.Name, Help: declared.Help, Buckets: declared.Buckets,
		}, declared.Labels),
	}
	for c := range classes {
		m.durations[c] = m.histogram.WithLabelValues(c.String())
	}
	return m
}

// Count counts a request. A nil Meter counts nothing.
func (m *Meter) Count(e Exchange) {
	if m == nil {
		return
	}
	now, kind := m.now(), classOf(e.Operation)
	m.durations[kind].Observe(now.Sub(e.Started).Seconds())
	bucket := m.of(e.Bucket)
	bucket.last.Store(now.Unix())
	bucket.received[kind].Add(unsigned(e.Received))
	bucket.sent[kind].Add(unsigned(e.Sent))
	if e.Code == OK {
		bucket.ok[kind].Add(1)
	} else {
		bucket.fail(failure{kind, known(e.Code)})
	}
	if e.Refusal != "" {
		m.mu.Lock()
		m.refused[e.Refusal]++
		m.mu.Unlock()
	}
}

func unsigned(n int64) uint64 { return uint64(max(n, 0)) }

func (m *Meter) of(bucket string) *counts {
	m.mu.RLock()
	found := m.buckets[bucket]
	m.mu.RUnlock()
	if found != nil {
		return found
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if found = m.buckets[bucket]; found == nil {
		found = &counts{failed: map[failure]uint64{}}
		m.buckets[bucket] = found
	}
	return found
}

func (c *counts) fail(f failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed[f]++
}

// Describe tells the metrics.
func (m *Meter) Describe(to chan<- *prometheus.Desc) {
	m.histogram.Describe(to)
	for _, desc := range []*prometheus.Desc{requests, received, sent, refused} {
		to <- desc
	}
}

// Collect tells what was counted, and forgets buckets that nobody uses any more.
func (m *Meter) Collect(to chan<- prometheus.Metric) {
	m.histogram.Collect(to)
	oldest := m.now().Add(-forgetAfter).Unix()
	m.mu.Lock()
	defer m.mu.Unlock()
	for reason, n := range m.refused {
		to <- counter(refused, n, reason)
	}
	for name, bucket := range m.buckets {
		if bucket.last.Load() < oldest {
			delete(m.buckets, name)
			continue
		}
		bucket.collect(name, to)
	}
}

func (c *counts) collect(name string, to chan<- prometheus.Metric) {
	for kind := range classes {
		if n := c.ok[kind].Load(); n > 0 {
			to <- counter(requests, n, name, kind.String(), OK)
		}
		if n := c.received[kind].Load(); n > 0 {
			to <- counter(received, n, name, kind.String())
		}
		if n := c.sent[kind].Load(); n > 0 {
			to <- counter(sent, n, name, kind.String())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for f, n := range c.failed {
		to <- counter(requests, n, name, f.class.String(), f.code)
	}
}

func counter(desc *prometheus.Desc, n uint64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
}

func describe(m metrics.Metric) *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}

var (
	requests = describe(metrics.Requests)
	received = describe(metrics.ReceivedBytes)
	sent     = describe(metrics.SentBytes)
	refused  = describe(metrics.KeysRefused)
)
