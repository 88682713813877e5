package sts_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/sts"
)

const (
	roleARN = "arn:aws:iam::000000000000:role/d8-app/data"
	bucket  = "d8-app-data-abcdefghijkl"
	userApp = "system:serviceaccount:d8-app:app"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world stands for everything behind the handler: the apiserver's reviews, the SystemBuckets and the key ring.
type world struct {
	identity   sts.Identity
	reviewErr  error
	granted    access.Permission
	accessErr  error
	bucketErr  error
	issueErr   error
	key        *access.Key // when set, what is issued
	lifetime   time.Duration
	limits     sts.Limits
	now        func() time.Time
	held       chan struct{} // when set, a review waits for it
	reviewing  chan struct{} // when set, a review reports its start
	failReview int           // so many reviews fail first

	mu      sync.Mutex
	reviews int
	asked   access.Role
	told    []sts.Issued
	counted []string // how each request was counted
	log     strings.Builder
}

func newWorld() *world {
	return &world{
		identity: sts.Identity{
			Username:  userApp,
			UID:       "uid-1",
			Groups:    []string{"system:serviceaccounts"},
			Audiences: []string{names.Audience},
			Extra: map[string][]string{
				"authentication.kubernetes.io/pod-name": {"app-0"},
				"authentication.kubernetes.io/pod-uid":  {"pod-uid-1"},
			},
		},
		granted:  access.ReadWrite,
		lifetime: 30 * time.Minute,
		limits:   sts.Limits{Request: time.Second, Pause: time.Millisecond, Queue: 20 * time.Millisecond},
		now:      func() time.Time { return noon },
	}
}

func (w *world) Review(ctx context.Context, _ string) (sts.Identity, error) {
	w.mu.Lock()
	w.reviews++
	failing := w.reviews <= w.failReview
	w.mu.Unlock()
	if w.reviewing != nil {
		w.reviewing <- struct{}{}
	}
	if w.held != nil {
		select {
		case <-w.held:
		case <-ctx.Done():
			return sts.Identity{}, ctx.Err()
		}
	}
	if failing {
		return sts.Identity{}, errors.New("connection refused")
	}
	return w.identity, w.reviewErr
}

func (w *world) Authorize(_ context.Context, _ sts.Identity, role access.Role) (access.Permission, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = role
	return w.granted, w.accessErr
}

func (w *world) Bucket(context.Context, string, string) (string, error) { return bucket, w.bucketErr }

func (w *world) Issue(grant access.Grant) (access.Key, error) {
	if w.issueErr != nil {
		return access.Key{}, w.issueErr
	}
	if w.key != nil {
		return *w.key, nil
	}
	key, err := access.Issue(access.RingKey{ID: 1, Secret: ringSecret()}, grant, [8]byte{1, 2, 3})
	return key, err
}

func ringSecret() []byte { return []byte(strings.Repeat("s", 32)) }

func (w *world) handler() *sts.Handler {
	return sts.New(sts.Config{
		Reviewer: w, Authorizer: w, Buckets: w, Issuer: w, Issued: func(i sts.Issued) { w.told = append(w.told, i) },
		Answered: w.count, Lifetime: w.lifetime, Limits: w.limits, Now: w.now,
		Log: funcr.New(func(_, args string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.log.WriteString(args + "\n")
		}, funcr.Options{}),
	})
}

func (w *world) count(refused *access.Error, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	code := "OK"
	if refused != nil {
		code = refused.Code
	}
	if took <= 0 {
		code += " in no time"
	}
	w.counted = append(w.counted, code)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// token is signed by nobody that anyone knows: the handler must not care, the review does.
func token(t *testing.T, expires time.Time, audience ...string) string {
	t.Helper()
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Issuer: "https://kubernetes.default.svc", Audience: audience, ExpiresAt: jwt.NewNumericDate(expires),
	}).SignedString([]byte("nobody"))
	require.NoError(t, err)
	return signed
}

func goodToken(t *testing.T) string {
	t.Helper()
	return token(t, noon.Add(time.Hour), names.Audience)
}

// form is a good request with the changes applied; an empty value takes the parameter away.
func form(t *testing.T, changes map[string]string) url.Values {
	t.Helper()
	values := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"},
		"RoleArn": {roleARN}, "RoleSessionName": {"session-1"}, "WebIdentityToken": {goodToken(t)},
	}
	for name, value := range changes {
		if value == "" {
			values.Del(name)
			continue
		}
		values.Set(name, value)
	}
	return values
}

func post(t *testing.T, values url.Values) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	return r
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	return recorder
}
