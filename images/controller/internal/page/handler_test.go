package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/images/controller/internal/page"
	"github.com/deckhouse/system-s3/images/controller/internal/page/pagetest"
	"github.com/deckhouse/system-s3/images/controller/internal/status"
	"github.com/deckhouse/system-s3/lib/kube"
	"github.com/deckhouse/system-s3/lib/sts"
)

var _ page.Viewers = (*kube.Reviews)(nil)

// viewers knows three tokens.
type viewers struct{}

var errDown = errors.New("connection refused")

func (viewers) View(_ context.Context, token string) (string, bool, error) {
	switch token {
	case "viewer":
		return "admin@example.test", true, nil
	case "stranger":
		return "stranger@example.test", false, nil
	case "down":
		return "", false, errDown
	default:
		return "", false, fmt.Errorf("%w: unknown", sts.ErrTokenRefused)
	}
}

func handler(t testing.TB, objects []client.Object) http.Handler {
	t.Helper()
	reader, err := pagetest.Cache(t.Context(), objects, page.Cached())
	require.NoError(t, err)
	observer := &page.Observer{Reader: reader, Live: reader, Version: "v1.2.3", Now: func() time.Time { return pagetest.Now }}
	h, err := page.New(page.Config{Observe: observer.Observe, Viewers: viewers{}, Log: logr.Discard()})
	require.NoError(t, err)
	return h
}

func get(t testing.TB, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	return ask(t, h, http.MethodGet, path, "Bearer viewer")
}

func ask(t testing.TB, h http.Handler, method, path, authorization string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPageIsNotOpen(t *testing.T) {
	t.Parallel()
	h := handler(t, pagetest.Well())
	cases := map[string]struct {
		authorization string
		code          int
		asks          bool // for a token
	}{
		"nobody":                  {"", http.StatusUnauthorized, true},
		"bearer":                  {"Bearer viewer", http.StatusOK, false},
		"bearer in small":         {"bearer  viewer ", http.StatusOK, false},
		"password of a browser":   {"Basic eDp2aWV3ZXI=", http.StatusOK, false}, // x:viewer
		"token as user":           {"Basic dmlld2VyOng=", http.StatusUnauthorized, true},
		"unknown token":           {"Bearer nonsense", http.StatusUnauthorized, true},
		"another scheme":          {"Digest viewer", http.StatusUnauthorized, true},
		"without the right":       {"Bearer stranger", http.StatusForbidden, false},
		"Kubernetes is not there": {"Bearer down", http.StatusServiceUnavailable, false},
	}
	for name, c := range cases {
		for _, path := range []string{"/", "/style.css", "/page.js", "/nothing"} {
			w := ask(t, h, http.MethodGet, path, c.authorization)
			if c.code == http.StatusOK && path == "/nothing" {
				require.Equal(t, http.StatusNotFound, w.Code, name)
				continue
			}
			require.Equal(t, c.code, w.Code, "%s asks for %s", name, path)
			require.Equal(t, c.asks, w.Header().Get("WWW-Authenticate") != "", name)
			if c.code != http.StatusOK {
				require.NotContains(t, w.Body.String(), "d8-loki", "a refusal tells nothing of the store")
			}
		}
	}
	require.Contains(t, ask(t, h, http.MethodGet, "/", "Bearer stranger").Body.String(), "modules/page", "the refusal names the right")
	require.Equal(t, http.StatusMethodNotAllowed, ask(t, h, http.MethodPost, "/", "Bearer viewer").Code, "the page only reads")
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	h := handler(t, pagetest.Well())
	for _, w := range []*httptest.ResponseRecorder{get(t, h, "/"), get(t, h, "/page.js"), get(t, h, "/nothing"), ask(t, h, http.MethodGet, "/", "")} {
		policy := w.Header().Get("Content-Security-Policy")
		require.True(t, strings.HasPrefix(policy, "default-src 'none'; "), policy)
		for _, part := range []string{"script-src 'self';", "style-src 'self';", "connect-src 'self';", "base-uri 'none';", "frame-ancestors 'none'"} {
			require.Contains(t, policy, part)
		}
		require.NotContains(t, policy, "unsafe")
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		require.Equal(t, "no-referrer", w.Header().Get("Referrer-Policy"))
	}
	require.Equal(t, "text/html; charset=utf-8", get(t, h, "/").Header().Get("Content-Type"))
}

// TestNothingInline: the policy would refuse it, and the page would look or work otherwise than meant.
func TestNothingInline(t *testing.T) {
	t.Parallel()
	for _, objects := range [][]client.Object{pagetest.Well(), pagetest.Trouble(), pagetest.Empty(), pagetest.Hostile()} {
		body := get(t, handler(t, objects), "/").Body.String()
		require.NotRegexp(t, regexp.MustCompile(`<[^>]* (style|on[a-z]+)=`), body)
		require.NotContains(t, body, "<style")
		require.Equal(t, 1, strings.Count(body, "<script"), "its own")
		require.NotRegexp(t, regexp.MustCompile(`(src|href|action)="(https?:)?//`), body, "nothing from elsewhere")
	}
}

func TestHostileNamesStayText(t *testing.T) {
	t.Parallel()
	h := handler(t, pagetest.Hostile())
	body := get(t, h, "/").Body.String()
	require.NotContains(t, body, `<script>alert`)
	require.Contains(t, body, `&lt;script&gt;alert`)
	require.NotRegexp(t, regexp.MustCompile(`<[^>]*onmouseover`), body)
	body = get(t, h, "/?q="+`%22%3E%3Cscript%3Ealert(1)%3C/script%3E`+"&namespace=%3Cb%3E&sort=%22onload=%22").Body.String()
	require.NotContains(t, body, `<script>alert`)
	require.Contains(t, body, `value="&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"`, "what was searched for stays in the field")
}

func TestPaging(t *testing.T) {
	t.Parallel()
	h := handler(t, pagetest.Many(200))
	require.Contains(t, get(t, h, "/").Body.String(), "1 to 50 of 205 buckets")
	require.Contains(t, get(t, h, "/?page=5").Body.String(), "201 to 205 of 205 buckets")
	require.Contains(t, get(t, h, "/?page=99").Body.String(), "Page 5 of 5", "beyond the end is the end")
	require.Contains(t, get(t, h, "/?page=x").Body.String(), "Page 1 of 5")
	require.Contains(t, get(t, h, "/?namespace=d8-team-03").Body.String(), "1 to 5 of 5 found among 205 buckets")
	require.Contains(t, get(t, h, "/?q=BUCKET-0007").Body.String(), "1 to 1 of 1 found among 205 buckets")
	require.Contains(t, get(t, h, "/?q=nowhere").Body.String(), "None of 205 buckets")
	require.Contains(t, get(t, h, "/?q=bucket&page=2&sort=share").Body.String(), `href="?page=3&amp;q=bucket&amp;sort=share#buckets"`)
}

func TestPageTells(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		objects []client.Object
		says    []string
	}{
		"well": {pagetest.Well(), []string{
			"<h1>All is well</h1>", "3 of 3", "garage-a-2", "master-2", "ServiceAccount d8-loki/loki", "may read and write",
			"ServiceAccount kube-system/etcd-backup <span class=\"quiet\">may write", "Group system:masters", "system-s3 v1.2.3",
		}},
		"trouble": {pagetest.Trouble(), []string{
			"The store works and needs attention", "StorageReady: degraded", "garage-a-2 on node master-2 is not connected", "1 of 3 volumes grown",
			"1 bucket: full", "Could not reach quorum", "QuotaReached",
		}},
		"empty": {pagetest.Empty(), []string{"Ready for the first bucket", "There is no SystemBucket yet", "Nothing has happened lately"}},
	}
	for name, c := range cases {
		body := get(t, handler(t, c.objects), "/").Body.String()
		for _, text := range c.says {
			require.Contains(t, body, text, name)
		}
	}
}

// refusing is an apiserver that lets us read nothing.
type refusing struct{ client.Reader }

func (refusing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errDown
}

func (refusing) List(context.Context, client.ObjectList, ...client.ListOption) error { return errDown }

func TestWhatCannotBeReadIsNotAbsent(t *testing.T) {
	t.Parallel()
	observer := &page.Observer{Reader: refusing{}, Live: refusing{}, Now: time.Now}
	w := observer.Observe(t.Context())
	require.Len(t, w.Unread, 7, "each kind of facts is told")
	h, err := page.New(page.Config{Observe: func(context.Context) status.World { return w }, Viewers: viewers{}, Log: logr.Discard()})
	require.NoError(t, err)
	body := get(t, h, "/").Body.String()
	for _, text := range []string{
		"The state is not known", "The buckets could not be read. That does not mean that there are none.",
		"Roles and bindings could not be read", "The events could not be read.", "connection refused",
	} {
		require.Contains(t, body, text)
	}
	require.NotContains(t, body, "There is no SystemBucket yet")
}

// BenchmarkPage is the whole answer with 5 000 SystemBuckets, their Roles and bindings in the cache.
func BenchmarkPage(b *testing.B) {
	h := handler(b, pagetest.Many(5000))
	for _, path := range []string{"/", "/?q=bucket-49&sort=share", "/?page=100", "/?namespace=d8-team-07&trouble=1"} {
		b.Run(strings.Trim(path, "/?"), func(b *testing.B) {
			for b.Loop() {
				if w := get(b, h, path); w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}

// TestPageIsFast counts the time of the processor, which other work on the machine does not stretch as it does the
// clock's; the benchmark measures both.
func TestPageIsFast(t *testing.T) {
	h := handler(t, pagetest.Many(5000))
	get(t, h, "/") // fills the caches, as the first visitor does
	fastest := time.Hour
	for range 5 {
		begin := spent(t)
		require.Equal(t, http.StatusOK, get(t, h, "/").Code)
		fastest = min(fastest, spent(t)-begin)
	}
	require.Less(t, fastest, 300*time.Millisecond)
}

// spent is the time of the processor that this process has taken.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
