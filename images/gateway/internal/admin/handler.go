// Package admin answers on the gateway's admin port: probes for the kubelet, and, to the bearer of the plane's admin
// token, the volume's space, what the controller pushes (the hold on writes, the revoked rights), and Garage's own admin
// API.
package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/deckhouse/system-s3/images/gateway/internal/revocation"
	"github.com/deckhouse/system-s3/images/gateway/internal/volume"
)

const (
	// maxBody bounds what is passed on to Garage's admin API; its largest real bodies are some kilobytes.
	maxBody = 4 << 20
	// drainPatience is how long the question whether all is drained waits for the draining to begin: both are sent by
	// the kubelet at the same moment.
	drainPatience = 5 * time.Second
	drainTick     = 100 * time.Millisecond
)

// Readiness tells whether the node serves.
type Readiness interface {
	Check(ctx context.Context) error
	Draining() bool
}

// Idle waits until no request is on its way to Garage.
type Idle interface {
	WaitIdle(ctx context.Context) error
}

// Space tells the state of the volume.
type Space interface {
	Status() (volume.Status, error)
}

// Revoked takes the list of revoked rights.
type Revoked interface {
	Replace(entries []revocation.Entry) error
}

// Hold makes writes wait.
type Hold interface {
	Hold(lasting time.Duration) (writing int)
	Release()
	State() (writing int, held time.Duration)
}

// Door lets clients in.
type Door interface {
	Open(epoch int) error
	Expect(epoch int) error
	IsOpen() bool
}

// Config is what the handler works with.
type Config struct {
	Token     string   // the plane's admin token
	Garage    *url.URL // of Garage's admin API
	Transport http.RoundTripper
	Readiness Readiness
	Idle      Idle
	Hold      Hold
	Space     Space
	Content   func() string // names the content of the volume
	Revoked   Revoked
	Door      Door
	Journal   Journal
	Fence     Fence
	Log       *zap.Logger
}

// New is the handler of the admin port.
func New(c Config) http.Handler {
	h := &handler{Config: c, token: sha256.Sum256([]byte("Bearer " + c.Token))}
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(c.Garage) },
		Transport:    c.Transport,
		ErrorHandler: h.unreachable,
		ErrorLog:     zap.NewStdLog(c.Log),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", h.ready)
	mux.HandleFunc("GET /gateway/v1/drained", h.drained)
	for pattern, handle := range map[string]http.HandlerFunc{
		"GET /gateway/v1/volume":     h.volume,
		"PUT /gateway/v1/revoked":    h.revoked,
		"GET /gateway/v1/door":       h.doorState,
		"PUT /gateway/v1/door":       h.door,
		"GET /gateway/v1/hold":       h.holdState,
		"PUT /gateway/v1/hold":       h.hold,
		"DELETE /gateway/v1/hold":    h.release,
		"PUT /gateway/v1/journal":    h.beginJournal,
		"GET /gateway/v1/journal":    h.readJournal,
		"DELETE /gateway/v1/journal": h.endJournal,
		"GET /gateway/v1/fence":      h.fenceState,
		"PUT /gateway/v1/fence":      h.fence,
	} {
		mux.Handle(pattern, h.authorized(handle))
	}
	mux.Handle("/v2/", h.authorized(limited(proxy)))
	mux.Handle("GET /health", h.authorized(proxy))
	return mux
}

type handler struct {
	Config

	token [sha256.Size]byte
}

// authorized lets only the bearer of the token through. It is checked here, in constant time, because Garage spends
// tens of milliseconds on every check and strangers could keep it busy.
func (h *handler) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(given[:], h.token[:]) != 1 {
			h.Log.Warn("admin request refused", zap.String("path", r.URL.Path), zap.String("remote", r.RemoteAddr))
			w.Header().Set("WWW-Authenticate", "Bearer")
			answer(w, http.StatusUnauthorized, "a valid bearer token is needed")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

func (h *handler) ready(w http.ResponseWriter, r *http.Request) {
	if err := h.Readiness.Check(r.Context()); err != nil {
		answer(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	answer(w, http.StatusOK, "ok")
}

// drained answers when no request is on its way to Garage any more. As the preStop hook of the Garage container it
// keeps Garage alive while the gateway, which is told to stop at the same moment, finishes what is running. Garage
// stopping alone, without the gateway, is not held up.
func (h *handler) drained(w http.ResponseWriter, r *http.Request) {
	if !h.waitDraining(r.Context()) {
		answer(w, http.StatusOK, "the gateway is not stopping")
		return
	}
	if err := h.Idle.WaitIdle(r.Context()); err != nil {
		answer(w, http.StatusServiceUnavailable, "requests are still running")
		return
	}
	answer(w, http.StatusOK, "drained")
}

func (h *handler) waitDraining(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	ticker := time.NewTicker(drainTick)
	defer ticker.Stop()
	for !h.Readiness.Draining() {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

// unreachable answers in the form of Garage's own admin errors, which its clients parse.
func (h *handler) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	h.Log.Warn("Garage's admin API does not answer", zap.String("path", r.URL.Path), zap.Error(err))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	body := map[string]string{"code": "ServiceUnavailable", "message": "Garage's admin API does not answer", "path": r.URL.Path}
	if err := json.NewEncoder(w).Encode(body); err != nil {
		h.Log.Debug("error not told", zap.Error(err))
	}
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(strings.TrimSpace(text) + "\n")) // an asker that left needs no answer
}
