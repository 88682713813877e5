package plane_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

// town is a stage with Kubernetes nodes and with volumes that are tied to them: replicas on node-0 to node-2, each with
// a gateway that names what is on its volume.
type town struct {
	*stage

	mu       sync.Mutex
	contents [3]string
	front    [3]string // URLs of the gateways
	runs     [3]int    // processes so far
}

// townTimeout is Garage's rpc_timeout_msec, which proofs wait for, twice each time.
const townTimeout = 4000

func newTown(t *testing.T) *town {
	t.Helper()
	cluster := garagetest.StartWith(t, 3, garagetest.Options{RPCTimeout: townTimeout})
	cluster.CreateBucket(t, "bucket")
	objects := []client.Object{}
	for i := range 5 {
		objects = append(objects, node("node-"+strconv.Itoa(i)))
	}
	w := &town{}
	for i := range 3 {
		w.contents[i] = "content-" + strconv.Itoa(i)
		w.front[i] = w.gateway(t, cluster, i)
		objects = append(objects, w.pod(i, "node-"+strconv.Itoa(i)))
		objects = append(objects, volume(i, "node-"+strconv.Itoa(i))...)
	}
	w.stage = newStage(t, cluster, fixture.Plan(3), objects...)
	w.gateways, w.logs = w, w
	w.restart()
	return w
}

func node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{plan.MasterNodeLabel: "", corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// volume is the claim of a replica and its volume, made an hour ago and tied to the node.
func volume(ordinal int, node string) []client.Object {
	name := names.GarageClaim("a", ordinal)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.Namespace, Name: name, UID: types.UID(name + node), CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)),
		Finalizers: []string{"kubernetes.io/pvc-protection"},
	}}
	claim.Spec.VolumeName = name + "-on-" + node + "-" + strings.ToLower(rand.Text())
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}}
	return []client.Object{claim, pv}
}

func (w *town) pod(ordinal int, node string) *corev1.Pod {
	w.runs[ordinal]++
	made := pod(ordinal, fmt.Sprintf("run-%d", w.runs[ordinal]))
	delete(made.Labels, "controller-revision-hash")
	made.Spec.NodeName = node
	made.Annotations[names.RPCTimeoutAnnotation] = strconv.Itoa(townTimeout)
	return made
}

// gateway passes everything on to Garage and names the content of the volume.
func (w *town) gateway(t *testing.T, cluster *garagetest.Cluster, ordinal int) string {
	t.Helper()
	target, err := url.Parse(cluster.Nodes[ordinal].AdminURL())
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(out http.ResponseWriter, _ *http.Request, _ error) {
			out.WriteHeader(http.StatusServiceUnavailable)
		},
	}
	mux := http.NewServeMux()
	mux.Handle("/", proxy)
	mux.HandleFunc("GET /gateway/v1/volume", func(out http.ResponseWriter, _ *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		_, _ = fmt.Fprintf(out, `{"total":1000,"free":500,"content":%q}`, w.contents[ordinal])
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// Address implements plane.Gateways.
func (w *town) Address(podIP string) backend.Address {
	address := fixture.Gateways{Cluster: w.cluster}.Address(podIP)
	for i := range w.front {
		if podIP == fixture.PodIP(i) {
			address.Admin = w.front[i]
		}
	}
	return address
}

// Client implements plane.Gateways.
func (*town) Client(string) (*http.Client, error) { return http.DefaultClient, nil }

// Tail implements plane.Logs.
func (w *town) Tail(_ context.Context, pod string, _ bool) (string, error) {
	for i, node := range w.cluster.Nodes {
		if pod == names.GaragePod("a", i) {
			return node.Log(w.t), nil
		}
	}
	return "", fmt.Errorf("no Pod %s", pod)
}

// kubernetes does what Kubernetes does after the Pod of a replica was deleted, and its claim: both are made anew.
func (w *town) kubernetes(ordinal int, node string) {
	w.t.Helper()
	w.cluster.Nodes[ordinal].Wipe(w.t)
	claim := &corev1.PersistentVolumeClaim{}
	require.NoError(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: names.GarageClaim("a", ordinal)}, claim))
	require.NotNil(w.t, claim.DeletionTimestamp, "the volume stays as long as its claim does")
	claim.Finalizers = nil
	require.NoError(w.t, w.client.Update(w.t.Context(), claim))
	w.mu.Lock()
	w.contents[ordinal] += " anew"
	w.mu.Unlock()
	for _, object := range append(volume(ordinal, node), w.pod(ordinal, node)) {
		require.NoError(w.t, w.client.Create(w.t.Context(), object))
	}
	w.cluster.Nodes[ordinal].Start(w.t)
}

func (w *town) claimGoes(ordinal int) bool {
	w.t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: names.GarageClaim("a", ordinal)}, claim)
	require.NoError(w.t, err)
	return claim.DeletionTimestamp != nil
}

// write writes objects that have blocks, by way of a replica.
func (w *town) write(through, count int) {
	w.t.Helper()
	s3c := backend.S3(w.cluster.Nodes[through].S3URL(), w.cluster.KeyID, w.cluster.KeySecret, http.DefaultClient)
	for range count {
		body := make([]byte, 100_000)
		_, _ = rand.Read(body) // never fails
		_, err := s3c.PutObject(w.t.Context(), &s3.PutObjectInput{
			Bucket: aws.String("bucket"), Key: aws.String(rand.Text()), Body: bytes.NewReader(body),
		})
		require.NoError(w.t, err)
	}
}

// list is the keys of all objects, by way of a replica.
func (w *town) list(through int) []string {
	w.t.Helper()
	s3c := backend.S3(w.cluster.Nodes[through].S3URL(), w.cluster.KeyID, w.cluster.KeySecret, http.DefaultClient)
	listed, err := s3c.ListObjectsV2(w.t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("bucket")})
	require.NoError(w.t, err)
	var keys []string
	for _, each := range listed.Contents {
		keys = append(keys, aws.ToString(each.Key))
	}
	return keys
}

// empty deletes all objects, by way of a replica.
func (w *town) empty(through int) {
	w.t.Helper()
	s3c := backend.S3(w.cluster.Nodes[through].S3URL(), w.cluster.KeyID, w.cluster.KeySecret, http.DefaultClient)
	for _, key := range w.list(through) {
		_, err := s3c.DeleteObject(w.t.Context(), &s3.DeleteObjectInput{Bucket: aws.String("bucket"), Key: aws.String(key)})
		require.NoError(w.t, err)
	}
}

// everything is all blocks on any disk.
func (w *town) everything() map[string]bool {
	all := map[string]bool{}
	for _, node := range w.cluster.Nodes {
		for block := range node.Blocks(w.t) {
			all[block] = true
		}
	}
	return all
}

// lacks is how many of the blocks the disk of a replica has not.
func (w *town) lacks(ordinal int, blocks map[string]bool) int {
	has, lacked := w.cluster.Nodes[ordinal].Blocks(w.t), 0
	for block := range blocks {
		if !has[block] {
			lacked++
		}
	}
	return lacked
}

// passUntil makes passes until something is so.
func (w *town) passUntil(what string, done func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(8 * time.Minute)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for w.pass(); !done(); w.pass() {
		require.True(w.t, time.Now().Before(deadline), "waited in vain: %s; %v; %v", what, w.condition("PlacementReady"), w.condition("StorageReady"))
		<-ticker.C
	}
}

// untilSays makes passes until a condition says something.
func (w *town) untilSays(condition, text string) {
	w.t.Helper()
	w.passUntil(text, func() bool { return strings.Contains(w.says(condition), text) })
}

func (w *town) proven() bool {
	state := w.state().Planes[0]
	for _, r := range state.Replicas {
		if r.Proven == "" || r.Proven != r.Content {
			return false
		}
	}
	return len(state.Replicas) == 3
}

func (w *town) speed(ordinal int) string {
	w.t.Helper()
	speed, err := garage.New(w.cluster.Nodes[ordinal].AdminURL(), w.cluster.AdminToken, http.DefaultClient).GetSpeed(w.t.Context())
	require.NoError(w.t, err)
	return fmt.Sprintf("%d workers, tranquility %d", speed.Workers, speed.Tranquility)
}

func (w *town) says(condition string) string {
	return fmt.Sprintf("%v %v: %v", w.condition(condition)["status"], w.condition(condition)["reason"], w.condition(condition)["message"])
}
