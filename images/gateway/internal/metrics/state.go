package metrics

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deckhouse/system-s3/images/gateway/internal/volume"
	"github.com/deckhouse/system-s3/lib/metrics"
	"github.com/deckhouse/system-s3/lib/version"
)

// component is the label by which the gateway's share of a metric is told from the controller's.
const component = "gateway"

// State is what can be asked of the gateway's parts at any moment.
type State struct {
	Ring        func() time.Time // when the newest key that is known was made
	Certificate func() time.Time // when the serving certificate ends
	Volume      func() (volume.Status, error)
	Running     func() int                               // requests
	Writes      func() (running int, held time.Duration) // how long new ones wait at most
	Revoked     func() int                               // subjects
}

type gauge struct {
	desc   *prometheus.Desc
	labels []string
	value  func() (float64, bool)
}

// gauges are the state as metrics, except for the volume, which is measured once for all of them.
func (s State) gauges() []gauge {
	always := func(value func() float64) func() (float64, bool) {
		return func() (float64, bool) { return value(), true }
	}
	return []gauge{
		{describe(metrics.BuildInfo), []string{component, version.String(), runtime.Version()}, always(func() float64 { return 1 })},
		{describe(metrics.KeyRingCreated), []string{component}, moment(s.Ring)},
		{describe(metrics.CertificateExpiry), []string{component}, moment(s.Certificate)},
		{describe(metrics.RequestsRunning), nil, always(func() float64 { return float64(s.Running()) })},
		{describe(metrics.WritesRunning), nil, always(func() float64 { running, _ := s.Writes(); return float64(running) })},
		{describe(metrics.WritesHeld), nil, always(func() float64 { _, held := s.Writes(); return truth(held > 0) })},
		{describe(metrics.RevokedSubjects), nil, always(func() float64 { return float64(s.Revoked()) })},
	}
}

// moment is a time in seconds; a time that nobody knows is not told.
func moment(when func() time.Time) func() (float64, bool) {
	return func() (float64, bool) {
		at := when()
		return float64(at.Unix()), !at.IsZero()
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

var (
	volumeSize    = describe(metrics.VolumeSize)
	volumeFree    = describe(metrics.VolumeFree)
	volumeReserve = describe(metrics.VolumeReserve)
	writesRefused = describe(metrics.WritesRefused)
)

// Describe tells the metrics.
func (s State) Describe(to chan<- *prometheus.Desc) {
	for _, g := range s.gauges() {
		to <- g.desc
	}
	for _, desc := range []*prometheus.Desc{volumeSize, volumeFree, volumeReserve, writesRefused} {
		to <- desc
	}
}

// Collect asks the parts. A volume that cannot be measured is not told: it is not empty.
func (s State) Collect(to chan<- prometheus.Metric) {
	for _, g := range s.gauges() {
		if value, known := g.value(); known {
			to <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, g.labels...)
		}
	}
	status, err := s.Volume()
	if err != nil {
		return
	}
	for desc, value := range map[*prometheus.Desc]float64{
		volumeSize: float64(status.Total), volumeFree: float64(status.Free), volumeReserve: float64(status.Reserve),
		writesRefused: truth(status.Refusing),
	} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
}
