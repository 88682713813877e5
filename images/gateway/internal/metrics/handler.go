package metrics

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// maxScrapes is how many questions are answered at once: a second Prometheus may be there, more need not.
const maxScrapes = 4

// NewHandler answers GET /metrics to the bearer of the token. The gateway cannot ask Kubernetes who somebody is, so who
// may look is who has the plane's metrics token, which opens nothing else.
func NewHandler(token string, meter *Meter, state State, log *zap.Logger) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(meter, state, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	answer := promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes, ErrorLog: zap.NewStdLog(log), ErrorHandling: promhttp.ContinueOnError,
	})
	wanted := sha256.Sum256([]byte("Bearer " + token))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		given := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(given[:], wanted[:]) != 1 {
			log.Info("a scrape was refused", zap.String("remote", r.RemoteAddr))
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the plane's metrics token is needed", http.StatusUnauthorized)
			return
		}
		answer.ServeHTTP(w, r)
	})
	return mux
}
