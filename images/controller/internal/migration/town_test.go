package migration_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/images/controller/internal/migration"
	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

// town is a cluster with two real planes: a, which serves, and b, to which the plan moves the store. What hooks, chart
// and Kubernetes do, the town does after each pass of the conductor.
type town struct {
	t         *testing.T
	client    client.Client
	board     *backend.Board
	conductor *migration.Conductor
	planes    map[string]*realPlane
	ring      access.Ring
	ca        string
	selected  atomic.Value // id of the plane that clients are sent to
	aborted   bool
	// seen are the phases that were persisted, in order.
	seen []plan.Phase

	gateways backend.Gateways
	// crashes tells of which phases the next attempt to persist them fails.
	crashes map[plan.Phase]bool
	crashed bool
}

const townBucket = "first"

func newTown(t *testing.T, nodes int) *town {
	t.Helper()
	shared := t.TempDir()
	w := &town{t: t, board: backend.NewBoard(), planes: map[string]*realPlane{}}
	w.ca = writeCertificate(t, shared)
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	w.ring = access.Ring{}.Rotate(time.Now().Add(-time.Hour), secret)
	ring, err := w.ring.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(shared, names.KeyRingKey), ring, 0o600))
	objects := []client.Object{
		fixture.PlanMap(t, w.plan(nodes, plan.RoleActive, plan.RoleTarget)),
		&corev1.Secret{ObjectMeta: meta(names.TLSSecret), Data: map[string][]byte{names.CAKey: []byte(w.ca)}},
	}
	for _, id := range []string{"a", "b"} {
		w.planes[id] = newRealPlane(t, id, shared, nodes)
		objects = append(objects, w.planes[id].objects(t)...)
	}
	objects = append(objects, service(names.GatewayService, "a", w.planes["a"].replicas[0].s3))
	w.planes["a"].cluster.CreateBucket(t, townBucket)
	w.client = fixture.Builder(t).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{Update: w.update}).Build()
	w.selected.Store("a")
	w.restart()
	return w
}

var errCrash = errors.New("the leader ends here")

// update fails when it would persist a phase before which the leader is to end.
func (w *town) update(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
	var state plan.State
	config, ours := object.(*corev1.ConfigMap)
	if ours && config.Name == names.StateConfigMap && json.Unmarshal([]byte(config.Data[names.StateKey]), &state) == nil &&
		state.Migration != nil && w.crashes[state.Migration.Phase] {
		w.crashes[state.Migration.Phase], w.crashed = false, true
		return errCrash
	}
	return c.Update(ctx, object, options...) //nolint:wrapcheck // it is the client's own
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: names.Namespace, Name: name, UID: types.UID("uid-" + name)}
}

func (*town) plan(nodes int, a, b plan.Role) plan.Plan {
	p := fixture.Plan(nodes)
	p.Planes[0].Role = a
	second := p.Planes[0]
	second.ID, second.Role, second.StorageClass = "b", b, "faster"
	p.Planes = append(p.Planes, second)
	return p
}

// objects are what the chart and Kubernetes make of a plane.
func (p *realPlane) objects(t *testing.T) []client.Object {
	t.Helper()
	name := names.GarageObject(p.id)
	objects := []client.Object{
		&appsv1.StatefulSet{ObjectMeta: meta(name)},
		&corev1.ConfigMap{ObjectMeta: meta(name)},
		&corev1.Secret{ObjectMeta: meta(name), Data: map[string][]byte{
			names.AdminTokenKey: []byte(p.cluster.AdminToken), names.SeedKey: []byte(hex.EncodeToString(p.cluster.Seed)),
		}},
		service(names.GatewayService+"-"+p.id, p.id, p.replicas[0].s3),
	}
	for i := range p.replicas {
		objects = append(objects, p.pod(i), &corev1.PersistentVolumeClaim{ObjectMeta: meta(names.GarageClaim(p.id, i))})
	}
	return objects
}

func (p *realPlane) pod(ordinal int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: meta(names.GaragePod(p.id, ordinal))}
	pod.UID = types.UID(rand.Text())
	pod.Labels = map[string]string{names.AppLabel: names.GarageApp, names.PlaneLabel: p.id}
	pod.Status.PodIP = podIP(p.id, ordinal)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return pod
}

func podIP(plane string, ordinal int) string { return "pod-" + plane + "-" + strconv.Itoa(ordinal) }

func service(name, plane, address string) *corev1.Service {
	host, port, _ := net.SplitHostPort(address)
	number, _ := strconv.Atoi(port)
	s := &corev1.Service{ObjectMeta: meta(name)}
	s.Spec.ClusterIP, s.Spec.Selector = host, map[string]string{names.PlaneLabel: plane}
	s.Spec.Ports = []corev1.ServicePort{{Name: names.ServingS3PortName, Port: int32(number)}}
	return s
}

// Address implements migration.Gateways.
func (w *town) Address(ip string) backend.Address {
	for id, p := range w.planes {
		for i, r := range p.replicas {
			if ip == podIP(id, i) {
				return backend.Address{Admin: "https://" + r.admin, S3: "https://" + r.s3}
			}
		}
	}
	return backend.Address{}
}

// Client implements migration.Gateways.
func (w *town) Client(ca string) (*http.Client, error) { return w.gateways.Client(ca) }

// restart makes a new conductor, as a new leader would: the one before ends without another word.
func (w *town) restart() {
	if w.conductor != nil {
		w.conductor.Stop()
	}
	w.conductor = &migration.Conductor{Client: w.client, Fresh: w.client, Gateways: w, Board: w.board}
	w.t.Cleanup(w.conductor.Stop)
}

// pass is one pass of the conductor, and what follows from it elsewhere.
func (w *town) pass() time.Duration {
	w.t.Helper()
	next, err := w.conductor.Pass(log.IntoContext(context.Background(), w.log()))
	if err != nil {
		w.t.Logf("a pass: %v", err)
	}
	if phase := w.phase(); len(w.seen) == 0 || w.seen[len(w.seen)-1] != phase {
		w.seen = append(w.seen, phase)
	}
	w.hooks()
	w.kubernetes()
	return next
}

func (w *town) log() logr.Logger { return testr.New(w.t) }

func (w *town) state() *plan.MigrationState {
	w.t.Helper()
	var object corev1.ConfigMap
	err := w.client.Get(context.Background(), key(names.StateConfigMap), &object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w.t, err)
	var state plan.State
	require.NoError(w.t, json.Unmarshal([]byte(object.Data[names.StateKey]), &state))
	return state.Migration
}

func (w *town) phase() plan.Phase {
	w.t.Helper()
	if state := w.state(); state != nil {
		return state.Phase
	}
	return ""
}

func key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: names.Namespace, Name: name}
}

// hooks are what the plan and the chart make of the state.
func (w *town) hooks() {
	w.t.Helper()
	nodes := len(w.planes["a"].replicas)
	wanted := w.plan(nodes, plan.RoleActive, plan.RoleTarget)
	state := w.state()
	switch {
	case state != nil && (state.Phase == plan.PhaseSwitched || state.Phase == plan.PhaseRetiring) || w.selected.Load() == "b":
		wanted = w.plan(nodes, plan.RoleRetiring, plan.RoleActive)
		w.selected.Store("b")
	case w.aborted && (state == nil || !state.Phase.Fenced()):
		wanted = w.plan(nodes, plan.RoleActive, plan.RoleRetiring)
	}
	var kept []plan.Plane
	for _, p := range wanted.Planes {
		if p.Role != plan.RoleRetiring || w.anythingOf(p.ID) {
			kept = append(kept, p)
		}
	}
	wanted.Planes = kept
	object := fixture.PlanMap(w.t, wanted)
	require.NoError(w.t, w.client.Update(context.Background(), object))
	var selecting corev1.Service
	require.NoError(w.t, w.client.Get(context.Background(), key(names.GatewayService), &selecting))
	selecting.Spec.Selector[names.PlaneLabel], _ = w.selected.Load().(string)
	require.NoError(w.t, w.client.Update(context.Background(), &selecting))
}

func (w *town) exists(object client.Object, name string) bool {
	w.t.Helper()
	err := w.client.Get(context.Background(), key(name), object)
	require.NoError(w.t, client.IgnoreNotFound(err))
	return err == nil
}

func (w *town) anythingOf(id string) bool {
	w.t.Helper()
	name := names.GarageObject(id)
	return w.exists(&appsv1.StatefulSet{}, name) || w.exists(&corev1.Secret{}, name) || w.exists(&corev1.ConfigMap{}, name) || w.claims(id) > 0
}

func (w *town) claims(id string) int {
	w.t.Helper()
	count := 0
	for i := range w.planes[id].replicas {
		if w.exists(&corev1.PersistentVolumeClaim{}, names.GarageClaim(id, i)) {
			count++
		}
	}
	return count
}

// kubernetes ends the Pods of a StatefulSet that is deleted.
func (w *town) kubernetes() {
	w.t.Helper()
	for id, p := range w.planes {
		if w.exists(&appsv1.StatefulSet{}, names.GarageObject(id)) {
			continue
		}
		for i, r := range p.replicas {
			if pod := (&corev1.Pod{}); w.exists(pod, names.GaragePod(id, i)) {
				require.Equal(w.t, len(p.replicas), w.claims(id), "volumes stay as long as Pods do")
				r.stop()
				require.NoError(w.t, w.client.Delete(context.Background(), pod))
			}
		}
	}
}

const moveLimit = 90 * time.Second

// until makes passes until something is so.
func (w *town) until(what string, done func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(moveLimit)
	for !done() {
		require.True(w.t, time.Now().Before(deadline), "waited in vain: %s; %s", what, w.told())
		timer := time.NewTimer(min(w.pass(), 200*time.Millisecond))
		<-timer.C
	}
}

func (w *town) told() string {
	state := w.state()
	if state == nil {
		return "no migration"
	}
	return fmt.Sprintf("%+v", *state)
}

func (w *town) untilPhase(phase plan.Phase) {
	w.t.Helper()
	w.until("phase "+string(phase), func() bool { return w.phase() == phase })
}

// untilMoved makes passes until nothing of plane a is left.
func (w *town) untilMoved() {
	w.t.Helper()
	w.until("the store moves", func() bool { return w.state() == nil && !w.anythingOf("a") })
	require.True(w.t, w.anythingOf("b"))
}

func (w *town) phases() string {
	var told []string
	for _, phase := range w.seen {
		told = append(told, string(phase))
	}
	return strings.Join(told, " ")
}
