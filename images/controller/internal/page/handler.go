package page

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-logr/logr"

	"github.com/deckhouse/system-s3/images/controller/internal/status"
)

//go:embed assets
var assets embed.FS

// policy lets the page use its own style sheet, its own script and itself, and nothing else from anywhere.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const longestText = 253 // of a search: no name is longer

// Config is what the page needs.
type Config struct {
	Observe func(ctx context.Context) status.World
	Viewers Viewers
	Log     logr.Logger
}

// New is the handler of the page.
func New(c Config) (http.Handler, error) {
	layout, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return nil, fmt.Errorf("parse the status page: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		view := status.Look(c.Observe(r.Context()), query(r))
		var body bytes.Buffer
		if err := layout.Execute(&body, view); err != nil {
			c.Log.Error(err, "cannot print the status page")
			http.Error(w, "The page cannot be printed; the log of the controller says why.", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = body.WriteTo(w) // whoever went away does not want to know
	})
	for file, kind := range map[string]string{
		"style.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		content, err := assets.ReadFile("assets/" + file)
		if err != nil {
			return nil, fmt.Errorf("read what belongs to the status page: %w", err)
		}
		mux.HandleFunc("GET /"+file, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(content)
		})
	}
	return guarded(admitted(c.Viewers, c.Log, mux)), nil
}

// guarded sets what every answer carries, refusals too.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy":      policy,
			"X-Content-Type-Options":       "nosniff",
			"X-Frame-Options":              "DENY",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
			"Cache-Control":                "no-store",
		} {
			w.Header().Set(name, value)
		}
		next.ServeHTTP(w, r)
	})
}

// query reads what is asked for; what makes no sense is as if it was not asked.
func query(r *http.Request) status.Query {
	values := r.URL.Query()
	text := strings.TrimSpace(values.Get("q"))
	page, _ := strconv.Atoi(values.Get("page")) // else it is the first
	q := status.Query{
		Text: strings.ToValidUTF8(text[:min(len(text), longestText)], ""), Namespace: values.Get("namespace"), Trouble: values.Get("trouble") != "", Page: page,
	}
	switch by := status.Sort(values.Get("sort")); by {
	case status.SortShare, status.SortUsed, status.SortSize:
		q.Sort = by
	}
	return q
}
