package metrics

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// reviewTimeout bounds the question whether somebody may scrape.
const reviewTimeout = 5 * time.Second

// Scrapers tells who may read the metrics. The error means that nobody could be asked.
type Scrapers interface {
	MayScrape(ctx context.Context, token string) (bool, error)
}

// Guarded lets only those through whom the apiserver vouches for and RBAC allows it, as the platform's own proxies do.
func Guarded(scrapers Scrapers) func(*rest.Config, *http.Client) (server.Filter, error) {
	return func(*rest.Config, *http.Client) (server.Filter, error) {
		return func(log logr.Logger, next http.Handler) (http.Handler, error) {
			return guard{scrapers: scrapers, next: next, log: log}, nil
		}, nil
	}
}

type guard struct {
	scrapers Scrapers
	next     http.Handler
	log      logr.Logger
}

// ServeHTTP never logs the token.
func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !given || token == "" {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a ServiceAccount token is needed", http.StatusUnauthorized)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	allowed, err := g.scrapers.MayScrape(ctx, token)
	switch {
	case err != nil:
		g.log.Error(err, "a scrape cannot be authorized", "remote", r.RemoteAddr)
		http.Error(w, "the Kubernetes API cannot be asked who you are", http.StatusServiceUnavailable)
	case !allowed:
		g.log.Info("a scrape was refused", "remote", r.RemoteAddr)
		http.Error(w, "get on deployments/prometheus-metrics of the controller is needed", http.StatusForbidden)
	default:
		g.next.ServeHTTP(w, r)
	}
}
