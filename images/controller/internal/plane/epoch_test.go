package plane_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/images/controller/internal/module"
	"github.com/deckhouse/system-s3/images/controller/internal/plane"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

var (
	noRequest = reconcile.Request{}
	readWrite = garage.Permissions{Read: true, Write: true}
)

const testBucket = "d8-test-goods"

// doorman stands before a node as its gateway does: it knows whether clients are let in, and whether writes are held.
type doorman struct {
	mu    sync.Mutex
	open  int
	held  bool
	proxy *httputil.ReverseProxy
}

func (d *doorman) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what, ours := strings.CutPrefix(r.URL.Path, "/gateway/v1/")
	if !ours {
		d.proxy.ServeHTTP(w, r)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case what == "door" && r.Method == http.MethodPut:
		var asked struct {
			Epoch int  `json:"epoch"`
			Open  bool `json:"open"`
		}
		_ = json.NewDecoder(r.Body).Decode(&asked)
		if asked.Open {
			d.open = asked.Epoch
		}
	case what == "hold":
		d.held = r.Method == http.MethodPut || d.held && r.Method == http.MethodGet
	}
	seconds := 0
	if d.held {
		seconds = 60
	}
	_, _ = fmt.Fprintf(w, `{"open": %t, "writing": 0, "heldSeconds": %d}`, d.open > 0, seconds)
}

// landing is a small world around the controller: the hooks, Kubernetes and the init steps of Pods, all of one plane.
type landing struct {
	*stage
	facts    plan.Facts
	settings plan.Settings
	doors    map[int]*doorman
	urls     map[int]string
	runs     int
	last     string
	killed   int
}

func (l *landing) Address(podIP string) backend.Address {
	address := fixture.Gateways{Cluster: l.cluster}.Address(podIP)
	for ordinal, u := range l.urls {
		if fixture.PodIP(ordinal) == podIP {
			address.Admin = u
		}
	}
	return address
}

func (*landing) Client(string) (*http.Client, error) { return http.DefaultClient, nil }

func newLanding(t *testing.T, first int) *landing {
	t.Helper()
	cluster := garagetest.StartWith(t, 3, garagetest.Options{Bare: true, Factor: first})
	l := &landing{
		facts: plan.Facts{StorageClass: "local", Replicas: first, ReplicationFactor: first, Epoch: 1},
		doors: map[int]*doorman{}, urls: map[int]string{},
	}
	for ordinal, node := range cluster.Nodes {
		target, err := url.Parse(node.AdminURL())
		require.NoError(t, err)
		l.doors[ordinal] = &doorman{proxy: httputil.NewSingleHostReverseProxy(target)}
		server := httptest.NewServer(l.doors[ordinal])
		t.Cleanup(server.Close)
		l.urls[ordinal] = server.URL
	}
	l.stage = newStage(t, cluster, plan.Plan{})
	for ordinal := range cluster.Nodes {
		if ordinal >= first {
			cluster.Nodes[ordinal].Kill()
			cluster.Wipe(t, ordinal)
			continue
		}
		l.bear(ordinal)
	}
	l.newLeader()
	return l
}

func (l *landing) newLeader() {
	conditions := module.Conditions{Client: l.client, Events: events.NewFakeRecorder(1000), Now: time.Now}
	l.planes = plane.New(l.client, l, conditions, l.board)
}

func (l *landing) want(highAvailability bool) { l.settings.HighAvailability = &highAvailability }

// observed is what the hooks read: the facts, the claims, and what the controller told.
func (l *landing) observed() plan.Cluster {
	c := plan.Cluster{
		Classes: []plan.StorageClass{{Name: "local", Default: true}}, Buckets: []plan.Bucket{{Namespace: "d8-x", Name: "x"}},
	}
	o := plan.ObservedPlane{ID: "a", Facts: l.facts, Known: true, TemplateBytes: 10 << 30}
	told := map[int]plan.ReplicaState{}
	var object corev1.ConfigMap
	if l.client.Get(l.t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: names.StateConfigMap}, &object) == nil {
		p := l.state().Planes[0]
		o.Progress = plan.Progress{Epoch: p.Epoch, Serving: p.Available, Whole: p.Whole, Proven: p.Proven, Spoiled: p.Spoiled}
		for _, r := range p.Replicas {
			told[r.Ordinal] = r
		}
	}
	for i := range 3 {
		c.Nodes = append(c.Nodes, plan.Node{Name: fmt.Sprintf("node-%d", i), Labels: []string{plan.MasterNodeLabel}})
		if l.exists(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.GarageClaim("a", i)}}) {
			o.Claims = append(o.Claims, plan.Claim{
				Name: names.GarageClaim("a", i), Class: "local", Bytes: 10 << 30, Capacity: 10 << 30, Bound: true,
				Up: told[i].Up, Node: told[i].Node, Stale: told[i].Stale,
			})
		}
	}
	c.Planes = []plan.ObservedPlane{o}
	return c
}

// decide is the hooks' and the chart's part.
func (l *landing) decide() plan.Plan {
	l.t.Helper()
	p := plan.Decide(l.observed(), l.settings)
	wanted := p.Planes[0]
	l.facts = plan.Facts{
		StorageClass: "local", Replicas: wanted.Replicas, ReplicationFactor: wanted.ReplicationFactor, Epoch: wanted.Epoch, Survivor: wanted.Survivor,
	}
	l.replace(fixture.PlanMap(l.t, p))
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.GarageObject("a")}}
	set.Spec.Replicas = ptr.To(int32(wanted.Replicas))
	set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: int32(wanted.OrdinalsStart)}
	if l.exists(set) {
		require.NoError(l.t, l.client.Delete(l.t.Context(), set.DeepCopy()))
	}
	require.NoError(l.t, l.client.Create(l.t.Context(), set))
	return p
}

// carry is Kubernetes' part: Pods that are wanted run, with a volume, and others end.
func (l *landing) carry(wanted plan.Plane) {
	l.t.Helper()
	for ordinal, node := range l.cluster.Nodes {
		pod := fixture.Pod(ordinal)
		wants := ordinal >= wanted.OrdinalsStart && ordinal < wanted.OrdinalsStart+wanted.Replicas
		switch exists := l.exists(pod); {
		case wants && !exists:
			node.Kill()
			l.bear(ordinal)
			node.Start(l.t)
		case !wants && exists:
			node.Kill()
			require.NoError(l.t, l.client.Delete(l.t.Context(), pod))
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.GarageClaim("a", ordinal)}}
		if !wants && !l.exists(claim) {
			node.Kill()
			l.cluster.Wipe(l.t, ordinal)
		}
	}
}

// bear makes the Pod of an ordinal, its volume, and the node ready for the epoch.
func (l *landing) bear(ordinal int) {
	l.t.Helper()
	l.runs++
	if l.facts.Epoch > 1 {
		l.cluster.Cross(l.t, ordinal, l.facts.Epoch, l.facts.ReplicationFactor)
	}
	l.doors[ordinal].mu.Lock()
	if l.doors[ordinal].held = false; l.doors[ordinal].open != l.facts.Epoch {
		l.doors[ordinal].open = 0
	}
	l.doors[ordinal].mu.Unlock()
	pod := fixture.Pod(ordinal)
	pod.UID = types.UID(fmt.Sprintf("uid-%d", l.runs))
	pod.Annotations = map[string]string{names.RPCTimeoutAnnotation: "10000"}
	pod.Spec.InitContainers = []corev1.Container{{Name: "prepare", Env: []corev1.EnvVar{{Name: "EPOCH", Value: fmt.Sprint(l.facts.Epoch)}}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: names.GarageContainer, ContainerID: "containerd://" + string(pod.UID),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	member := slices.Contains(l.facts.Members(), ordinal)
	if !member {
		pod.Status.Conditions[0].Status = corev1.ConditionFalse
	}
	require.NoError(l.t, l.client.Create(l.t.Context(), pod))
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.Namespace, Name: names.GarageClaim("a", ordinal), UID: pod.UID, CreationTimestamp: metav1.Now(),
	}}
	if !l.exists(claim) {
		require.NoError(l.t, l.client.Create(l.t.Context(), claim))
	}
}

// round is one round of everybody. Whenever the controller has told something new it dies.
func (l *landing) round() plan.Plan {
	l.t.Helper()
	p := l.decide()
	l.carry(p.Planes[0])
	_, err := l.planes.Reconcile(l.t.Context(), noRequest)
	require.NoError(l.t, err)
	var object corev1.ConfigMap
	if l.client.Get(l.t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: names.StateConfigMap}, &object) != nil {
		return p
	}
	told := l.state().Planes[0]
	progress := fmt.Sprintf("epoch %d opened %d whole %d handed %d spoiled %d proven %t, facts %+v",
		told.Epoch, told.Opened, told.Whole, told.Handed, told.Spoiled, told.Proven, l.facts)
	if progress != l.last {
		l.t.Log(time.Now().Format(time.TimeOnly), progress, p.Migration.Reason)
		l.last = progress
		l.killed++
		l.newLeader()
	}
	return p
}

// roundInterval leaves Garage time for something else: a round costs it some 150 ms of CPU.
const roundInterval = 500 * time.Millisecond

func (l *landing) settle(what string, done func(plan.Plan) bool) {
	l.t.Helper()
	deadline := time.Now().Add(8 * time.Minute)
	for {
		p := l.round()
		if done(p) {
			return
		}
		if time.Now().After(deadline) {
			require.FailNow(l.t, "it does not come to an end", "%s: %s; %s", what, l.message(), p.Migration.Message)
		}
		wait := time.NewTimer(roundInterval)
		<-wait.C
	}
}

// rests tells that the plane has so many replicas and nothing is left to do.
func (l *landing) rests(replicas int) func(plan.Plan) bool {
	return func(p plan.Plan) bool {
		claims := len(l.observed().Planes[0].Claims)
		return p.Planes[0].Replicas == replicas && p.Planes[0].ReplicationFactor == replicas && claims == replicas &&
			p.Migration.Reason == plan.ReasonNotNeeded && l.condition(module.StorageReady)["reason"] == plan.ReasonReady
	}
}

// store is S3 of a replica that is let in to.
func (l *landing) store(ordinal int) *s3.Client {
	return backend.S3(l.cluster.Nodes[ordinal].S3URL(), l.cluster.KeyID, l.cluster.KeySecret, http.DefaultClient)
}

// goods are objects: some that fit into the metadata, some of one block, some of several.
func goods(seed uint64) map[string][]byte {
	random := rand.New(rand.NewPCG(seed, 7))
	all := map[string][]byte{}
	for i, size := range []int{10, 2000, 5000, 100_000, 900_000, 1 << 20, 3<<20 + 17, 5 << 20} {
		for n := range 4 {
			body := make([]byte, size+n)
			for j := range body {
				body[j] = byte(random.Uint32())
			}
			all[fmt.Sprintf("%d/%d-%d", seed, i, n)] = body
		}
	}
	return all
}

func (l *landing) put(ordinal int, objects map[string][]byte) {
	l.t.Helper()
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		_, err := l.store(ordinal).PutObject(l.t.Context(), &s3.PutObjectInput{
			Bucket: aws.String(testBucket), Key: aws.String(key), Body: bytes.NewReader(objects[key]),
		})
		require.NoError(l.t, err)
	}
}

func (l *landing) check(ordinal int, objects map[string][]byte) {
	l.t.Helper()
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		answer, err := l.store(ordinal).GetObject(l.t.Context(), &s3.GetObjectInput{Bucket: aws.String(testBucket), Key: aws.String(key)})
		require.NoErrorf(l.t, err, "%s from replica %d", key, ordinal)
		body, err := io.ReadAll(answer.Body)
		require.NoError(l.t, err)
		require.Equalf(l.t, sha256.Sum256(objects[key]), sha256.Sum256(body), "%s from replica %d", key, ordinal)
	}
}

// bucket makes the bucket.
func (l *landing) bucket(ordinal int) {
	l.t.Helper()
	made, err := l.cluster.ClientOf(ordinal).CreateBucket(l.t.Context())
	require.NoError(l.t, err)
	_, err = l.cluster.ClientOf(ordinal).AddBucketAlias(l.t.Context(), made.ID, testBucket)
	require.NoError(l.t, err)
	_, err = l.cluster.ClientOf(ordinal).AllowBucketKey(l.t.Context(), made.ID, l.cluster.KeyID, readWrite)
	require.NoError(l.t, err)
}

// TestOneThreeOne: one replica becomes three and one again, on the same data. The controller dies after every step that
// it remembers. Each replica of three holds every block on its own disk before it is told finished, and so does the one
// that stays before the volumes of the others go.
func TestOneThreeOne(t *testing.T) {
	t.Parallel()
	l := newLanding(t, 1)
	l.want(false)
	l.settle("one", l.rests(1))
	l.bucket(0)
	objects := goods(1)
	l.put(0, objects)
	blocks := l.cluster.Blocks(t, 0)
	require.Greater(t, len(blocks), 30)

	l.want(true)
	l.settle("three", l.rests(3))
	for ordinal := range 3 {
		l.check(ordinal, objects)
		require.Equal(t, blocks, l.cluster.Blocks(t, ordinal), "every block lies on replica %d", ordinal)
	}
	maps.Copy(objects, goods(2))
	l.put(1, goods(2))

	l.want(false)
	l.settle("one again", l.rests(1))
	survivor := l.facts.Survivor
	l.check(survivor, objects)
	require.Equal(t, 3, l.facts.Epoch)
	require.GreaterOrEqual(t, l.killed, 10, "a controller died at every step")
}
