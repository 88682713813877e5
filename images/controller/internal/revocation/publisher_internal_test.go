package revocation

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
)

// gateways leads every Pod to one server, by its IP as the path.
type gateways struct{ url string }

func (g gateways) Address(podIP string) backend.Address {
	return backend.Address{Admin: g.url + "/" + podIP}
}

func (gateways) Client(string) (*http.Client, error) { return http.DefaultClient, nil }

func TestPushTellsEveryGatewayAndTriesAgain(t *testing.T) {
	var refuses atomic.Bool
	told := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.Equal(t, "Bearer the-token", r.Header.Get("Authorization"))
		if refuses.Load() && strings.HasPrefix(r.URL.Path, "/"+fixture.PodIP(1)) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		told <- r.Method + " " + r.URL.Path + " " + string(body)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: names.Namespace, Name: name} }
	cluster := fixture.Builder(t).WithObjects(
		fixture.Pod(0), fixture.Pod(1), fixture.Pending(2),
		&corev1.Secret{ObjectMeta: meta(names.GarageObject("a")), Data: map[string][]byte{names.AdminTokenKey: []byte("the-token")}},
		&corev1.Secret{ObjectMeta: meta(names.TLSSecret), Data: map[string][]byte{names.CAKey: []byte(fixture.CA)}},
	).Build()
	var logged []string
	push := &Push{Reader: cluster, Gateways: gateways{server.URL}, Log: funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})}

	push.Publish(t.Context(), []entry{{Subject: "aa", Bucket: "bb", Permission: access.Write, Until: noon}})
	require.Len(t, told, 2, "a Pod without an address has nobody to tell")
	for range 2 {
		message := <-told
		require.Contains(t, message, "/gateway/v1/revoked ")
		_, body, _ := strings.Cut(message, "revoked ")
		require.JSONEq(t, `{"revoked":[{"subject":"aa","bucket":"bb","permission":2,"until":"2026-03-01T12:00:00Z"}]}`, body)
	}
	require.Empty(t, logged)

	refuses.Store(true)
	push.Publish(t.Context(), nil)
	push.Publish(t.Context(), nil)
	require.Len(t, logged, 1, "a failure is told once")
	refuses.Store(false)
	push.Publish(t.Context(), nil)
	require.Len(t, logged, 2, "and its end")
	for range 4 {
		message := <-told
		_, body, _ := strings.Cut(message, "revoked ")
		require.True(t, json.Valid([]byte(body)), body)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	push.Publish(canceled, nil)
	require.Len(t, logged, 4)
}
