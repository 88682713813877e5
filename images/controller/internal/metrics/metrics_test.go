package metrics_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deckhouse/system-s3/images/controller/internal/metrics"
	"github.com/deckhouse/system-s3/images/controller/internal/module"
	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	declared "github.com/deckhouse/system-s3/lib/metrics"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

func meta(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: names.Namespace, Name: name, Labels: labels}
}

func garage(revision string) map[string]string {
	labels := map[string]string{names.AppLabel: names.GarageApp, names.PlaneLabel: "a"}
	if revision != "" {
		labels[appsv1.ControllerRevisionHashLabelKey] = revision
	}
	return labels
}

// world is what the controller has in its cache while a roll has one replica behind it.
func world() []client.Object {
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta(names.PlanConfigMap, nil), Data: map[string]string{
			names.PlanKey: `{"planes":[{"id":"a","role":"active","storageClass":"local","tier":"masters","replicas":3}]}`,
		}},
		&corev1.ConfigMap{ObjectMeta: meta(names.StateConfigMap, nil), Data: map[string]string{
			names.StateKey: `{"planes":[{"id":"a","available":true,"moving":"garage-a-1","replicas":[
				{"ordinal":0,"node":"m0","up":true,"ready":true,"volumeBytes":100,"volumeFree":40},{"ordinal":1,"fill":{"percent":25}}]}],
				"migration":{"source":"a","target":"b","phase":"Copying","objects":200,"copied":50,"bytes":4096,"copiedBytes":1024,"awaited":"a door"}}`,
		}},
		&appsv1.StatefulSet{ObjectMeta: meta("garage-a", garage("")), Status: appsv1.StatefulSetStatus{UpdateRevision: "new"}},
		&corev1.Pod{ObjectMeta: meta("garage-a-0", garage("new"))},
		&corev1.Pod{ObjectMeta: meta("garage-a-1", garage("old"))},
		&corev1.Pod{ObjectMeta: meta("garage-a-2", garage("old"))},
		&v1alpha1.SystemBucket{
			ObjectMeta: metav1.ObjectMeta{Namespace: "d8-app", Name: "data"},
			Status: v1alpha1.SystemBucketStatus{
				BucketName: "d8-app-data-abcdefghijkl", Used: ptr.To(resource.MustParse("1Gi")), Objects: ptr.To(int64(5)),
				Quota:      &v1alpha1.SystemBucketQuota{Size: ptr.To(resource.MustParse("10Gi")), MaxObjects: ptr.To(int64(100))},
				Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready"}},
			},
		},
		&v1alpha1.SystemBucket{ObjectMeta: metav1.ObjectMeta{Namespace: "d8-app", Name: "fresh"}},
	}
}

func reader(t testing.TB, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource().Build()
}

func elected() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}

func TestTheLeaderTellsTheStore(t *testing.T) {
	store := metrics.Store{Reader: reader(t, world()...), Elected: elected(), Log: logr.Discard()}
	want := map[string]string{
		"plane_info":                `{plane="a",role="active",storage_class="local",tier="masters"} 1`,
		"plane_replicas":            `{plane="a"} 3`,
		"plane_available":           `{plane="a"} 1`,
		"plane_healthy":             `{plane="a"} 0`,
		"plane_outdated_replicas":   `{plane="a"} 2`,
		"plane_moving":              `{plane="a"} 1`,
		"replica_fill_ratio":        `{plane="a",replica="garage-a-1"} 0.25`,
		"migration_info":            `{phase="Copying",source="a",target="b"} 1`,
		"migration_waiting":         `{source="a",target="b"} 1`,
		"migration_objects":         ` 200`,
		"migration_copied_objects":  ` 50`,
		"migration_bytes":           ` 4096`,
		"migration_copied_bytes":    ` 1024`,
		"replica_volume_free_bytes": `{plane="a",replica="garage-a-0"} 40`,
		"bucket_info":               `{bucket="d8-app-data-abcdefghijkl",name="data",namespace="d8-app"} 1`,
		"bucket_condition":          `{name="data",namespace="d8-app",reason="Ready",status="True",type="Ready"} 1`,
		"bucket_used_bytes":         `{name="data",namespace="d8-app"} 1.073741824e+09`,
		"bucket_quota_bytes":        `{name="data",namespace="d8-app"} 1.073741824e+10`,
		"bucket_objects":            `{name="data",namespace="d8-app"} 5`,
		"bucket_quota_objects":      `{name="data",namespace="d8-app"} 100`,
	}
	var text strings.Builder
	var told []string
	for _, m := range declared.All() {
		line, ok := want[strings.TrimPrefix(m.Name, "system_s3_")]
		if ok {
			fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s gauge\n%s%s\n", m.Name, m.Help, m.Name, m.Name, line)
			told = append(told, m.Name)
		}
	}
	require.Len(t, told, len(want))
	require.NoError(t, testutil.CollectAndCompare(store, strings.NewReader(text.String()), told...))
	require.NoError(t, testutil.CollectAndCompare(store, strings.NewReader(`
# HELP system_s3_replica_up 1 while Garage is connected to the replica. The label node is empty while its Pod has none.
# TYPE system_s3_replica_up gauge
system_s3_replica_up{node="",plane="a",replica="garage-a-1"} 0
system_s3_replica_up{node="m0",plane="a",replica="garage-a-0"} 1
`), "system_s3_replica_up"))
}

func TestWhoDoesNotLeadTellsNothingOfTheStore(t *testing.T) {
	store := metrics.Store{Reader: reader(t, world()...), Elected: make(chan struct{}), Log: logr.Discard()}
	require.Zero(t, testutil.CollectAndCount(store), "two who tell the same would be added up")
}

func TestAnUnreadableStateIsNotToldAsNothing(t *testing.T) {
	objects := world()
	objects[1].(*corev1.ConfigMap).Data[names.StateKey] = "{"
	store := metrics.Store{Reader: reader(t, objects...), Elected: elected(), Log: logr.Discard()}
	require.Zero(t, testutil.CollectAndCount(store, "system_s3_plane_available"))
	require.Equal(t, 1, testutil.CollectAndCount(store, "system_s3_plane_replicas"), "the rest is told")
}

type nowhere struct{ err error }

func (n nowhere) Publish(context.Context, []module.Condition) error { return n.err }

func TestConditionsAreToldEvenIfTheModuleCannotBeWritten(t *testing.T) {
	lost := errors.New("conflict")
	c := &metrics.Conditions{Next: nowhere{lost}}
	require.Zero(t, testutil.CollectAndCount(c))
	require.ErrorIs(t, c.Publish(t.Context(), []module.Condition{
		{Type: module.StorageReady, Verdict: plan.Verdict{Reason: plan.ReasonQuorumLost}},
		{Type: module.PlacementReady, Verdict: plan.Verdict{OK: true, Reason: plan.ReasonPlaced}},
		{Type: module.MigrationReady},
	}), lost)
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP system_s3_condition Always 1: a condition of Module/system-s3 as it is now.
# TYPE system_s3_condition gauge
system_s3_condition{reason="Placed",status="True",type="PlacementReady"} 1
system_s3_condition{reason="QuorumLost",status="False",type="StorageReady"} 1
`)))
}

func TestExchangesAreCountedByResult(t *testing.T) {
	e := metrics.NewExchanges()
	e.Count(nil, time.Millisecond)
	e.Count(&access.ErrDenied, time.Millisecond)
	e.Count(&access.Error{Code: "IDPCommunicationError", Status: http.StatusBadRequest}, time.Second)
	e.Count(&access.Error{Code: "ServiceUnavailable", Status: http.StatusServiceUnavailable}, time.Second)
	require.NoError(t, testutil.CollectAndCompare(e, strings.NewReader(`
# HELP system_s3_sts_exchanges_total Requests for a key, by what they were answered with: `+"`OK`"+` or STS's error.
# TYPE system_s3_sts_exchanges_total counter
system_s3_sts_exchanges_total{code="AccessDenied"} 1
system_s3_sts_exchanges_total{code="IDPCommunicationError"} 1
system_s3_sts_exchanges_total{code="OK"} 1
system_s3_sts_exchanges_total{code="ServiceUnavailable"} 1
`), declared.Exchanges.Name))
	require.Equal(t, 3, testutil.CollectAndCount(e, declared.ExchangeDuration.Name), "issued, refused, failed")
}

func self() metrics.Self {
	certificate := httptest.NewTLSServer(nil)
	defer certificate.Close()
	return metrics.Self{
		Ring:        func() (access.Ring, error) { return access.Ring{}.Rotate(time.Now(), make([]byte, 32)), nil },
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate.TLS.Certificates[0], nil },
	}
}

// What is declared for the controller is told, and nothing else of that prefix.
func TestTheControllerTellsWhatIsDeclared(t *testing.T) {
	conditions, exchanges := &metrics.Conditions{Next: nowhere{}}, metrics.NewExchanges()
	require.NoError(t, conditions.Publish(t.Context(), []module.Condition{{Type: "T", Verdict: plan.Verdict{Reason: "R"}}}))
	exchanges.Count(nil, time.Second)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(conditions, exchanges, self(), metrics.Store{Reader: reader(t, world()...), Elected: elected(), Log: logr.Discard()})
	families, err := registry.Gather()
	require.NoError(t, err)
	var told, wanted []string
	for _, family := range families {
		told = append(told, family.GetName())
	}
	for _, each := range declared.All() {
		for _, source := range each.Sources {
			if source != declared.Gateway {
				wanted = append(wanted, each.Name)
			}
		}
	}
	require.ElementsMatch(t, wanted, told)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

type scrapers map[string]bool

func (s scrapers) MayScrape(_ context.Context, token string) (bool, error) {
	allowed, known := s[token]
	if !known {
		return false, errors.New("no apiserver")
	}
	return allowed, nil
}

func TestWhoMayScrape(t *testing.T) {
	provider, err := metrics.Guarded(scrapers{"prometheus": true, "somebody": false})(nil, nil)
	require.NoError(t, err)
	handler, err := provider(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	require.NoError(t, err)
	for header, want := range map[string]int{
		"": http.StatusUnauthorized, "Bearer ": http.StatusUnauthorized, "Basic prometheus": http.StatusUnauthorized,
		"Bearer somebody": http.StatusForbidden, "Bearer lost": http.StatusServiceUnavailable, "Bearer prometheus": http.StatusOK,
	} {
		request := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		request.Header.Set("Authorization", header)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		require.Equal(t, want, answer.Code, header)
	}
}

// A scrape with thousands of buckets must not take seconds.
func BenchmarkScrapeOfFiveThousandBuckets(b *testing.B) {
	objects := world()
	for i := range 5000 {
		sb := objects[6].DeepCopyObject().(*v1alpha1.SystemBucket)
		sb.Name, sb.Status.BucketName = fmt.Sprint("data-", i), fmt.Sprint("bucket-", i)
		objects = append(objects, sb)
	}
	store := metrics.Store{Reader: reader(b, objects...), Elected: elected(), Log: logr.Discard()}
	registry := prometheus.NewRegistry()
	registry.MustRegister(store)
	b.ReportAllocs()
	for b.Loop() {
		_, err := registry.Gather()
		require.NoError(b, err)
	}
}
