package serving

import (
	"crypto/x509"
	"net/http"
	"time"

	"github.com/deckhouse/system-s3/images/gateway/internal/metrics"
)

func (s *Server) metricsHandler(token string) http.Handler {
	return metrics.NewHandler(token, s.meter, metrics.State{
		Ring: func() time.Time {
			keys := s.ring.Current().Keys
			if len(keys) == 0 {
				return time.Time{}
			}
			return keys[len(keys)-1].CreatedAt
		},
		Certificate: s.certificateEnd,
		Volume:      s.guard.Status,
		Running:     s.gate.Running,
		Writes:      s.gate.State,
		Revoked:     s.revoked.Len,
	}, s.config.Log.Named("metrics"))
}

// certificateEnd is when the serving certificate ends; zero when that cannot be read.
func (s *Server) certificateEnd() time.Time {
	cert := s.cert.Current()
	if cert.Leaf != nil {
		return cert.Leaf.NotAfter
	}
	if len(cert.Certificate) == 0 {
		return time.Time{}
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		return time.Time{}
	}
	return leaf.NotAfter
}

// MetricsAddress is where the metrics are told.
func (s *Server) MetricsAddress() string { return s.metrics.listener.Addr().String() }
