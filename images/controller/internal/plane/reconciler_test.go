package plane_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/images/controller/internal/module"
	"github.com/deckhouse/system-s3/images/controller/internal/plane"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

// stage is a fake cluster with a real Garage behind its Pods.
type stage struct {
	t       *testing.T
	client  client.Client
	board   *backend.Board
	planes  *plane.Reconciler
	cluster *garagetest.Cluster
	// gateways lead straight to Garage unless a test puts others there.
	gateways plane.Gateways
	logs     plane.Logs
}

func newStage(t *testing.T, cluster *garagetest.Cluster, p plan.Plan, objects ...client.Object) *stage {
	t.Helper()
	objects = append(objects, fixture.PlanMap(t, p), module.Object())
	objects = append(objects, fixture.Secrets(t, cluster)...)
	s := &stage{t: t, client: fixture.Builder(t).WithObjects(objects...).Build(), board: backend.NewBoard(), cluster: cluster}
	s.gateways = fixture.Gateways{Cluster: cluster}
	s.restart()
	return s
}

// restart makes a new reconciler, as a new leader would.
func (s *stage) restart() {
	conditions := module.Conditions{Client: s.client, Events: events.NewFakeRecorder(100), Now: time.Now}
	s.planes = plane.New(s.client, s.gateways, conditions, s.board)
	s.planes.Logs = s.logs
}

func (s *stage) pass() {
	s.t.Helper()
	result, err := s.planes.Reconcile(log.IntoContext(s.t.Context(), logr.Discard()), reconcile.Request{})
	require.NoError(s.t, err)
	require.Positive(s.t, result.RequeueAfter, "health is looked at again")
}

// until makes passes until the condition StorageReady has the reason and its
// message every one of the texts: a store that breaks passes through states of
// the same reason.
func (s *stage) until(reason string, texts ...string) {
	s.t.Helper()
	require.EventuallyWithT(s.t, func(c *assert.CollectT) {
		s.pass()
		storage := s.condition(module.StorageReady)
		assert.Equal(c, reason, storage["reason"], "%v", storage["message"])
		for _, text := range texts {
			assert.Contains(c, storage["message"], text)
		}
	}, 40*time.Second, 50*time.Millisecond)
}

func (s *stage) condition(conditionType string) map[string]any {
	s.t.Helper()
	object := module.Object()
	require.NoError(s.t, s.client.Get(s.t.Context(), client.ObjectKey{Name: names.Module}, object))
	list, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	require.NoError(s.t, err)
	for _, each := range list {
		if m, ok := each.(map[string]any); ok && m["type"] == conditionType {
			return m
		}
	}
	return nil
}

func (s *stage) state() plan.State {
	s.t.Helper()
	var object corev1.ConfigMap
	require.NoError(s.t, s.client.Get(s.t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: names.StateConfigMap}, &object))
	var state plan.State
	require.NoError(s.t, json.Unmarshal([]byte(object.Data[names.StateKey]), &state))
	return state
}

func (s *stage) replace(object client.Object) {
	s.t.Helper()
	require.NoError(s.t, s.client.Delete(s.t.Context(), object))
	object.SetResourceVersion("")
	require.NoError(s.t, s.client.Create(s.t.Context(), object))
}

func TestThreeReplicas(t *testing.T) {
	t.Parallel()
	cluster := garagetest.StartWith(t, 3, garagetest.Options{Bare: true})
	s := newStage(t, cluster, fixture.Plan(3), fixture.Pod(0), fixture.Pod(1), fixture.Pending(2))
	cluster.Nodes[2].Kill()

	s.pass()
	s.pass()
	storage := s.condition(module.StorageReady)
	assert.Equal(t, "LayoutFailed", storage["reason"], "two of three is no store")
	assert.Contains(t, storage["message"], "only 2 of them have a node")
	assert.Contains(t, storage["message"], "highAvailability: false")
	placement := s.condition(module.PlacementReady)
	assert.Equal(t, "PlacementBlocked", placement["reason"])
	assert.Contains(t, placement["message"], "2 of 3 replicas have a node with the label node-role.kubernetes.io/control-plane, each its own; for the others the scheduler finds none: garage-a-2: 0/2 nodes are available")
	layout, err := cluster.Client().GetClusterLayout(t.Context())
	require.NoError(t, err)
	assert.Zero(t, layout.Version, "no layout over an incomplete set")
	assert.Empty(t, layout.Staged)
	store, known := s.board.Read()
	require.True(t, known)
	assert.Nil(t, store.Connection)

	cluster.Nodes[2].Start(t)
	s.replace(fixture.Pod(2))
	s.until("Ready")
	assert.Equal(t, "Placed", s.condition(module.PlacementReady)["reason"])
	assert.Equal(t, "Enough", s.condition(module.CapacityReady)["reason"])
	assert.Equal(t, "NotNeeded", s.condition(module.MigrationReady)["reason"])
	state := s.state().Planes[0]
	assert.Equal(t, 1, state.LayoutVersion)
	assert.Equal(t, 1, state.Epoch)
	assert.Equal(t, 3, state.ReplicationFactor)
	assert.True(t, state.Healthy && state.Available)
	assert.Empty(t, state.Problem)
	require.Len(t, state.Replicas, 3)
	assert.Equal(t, plan.ReplicaState{Ordinal: 2, Node: "node-2", Up: true, Ready: true}, state.Replicas[2])
	_, err = cluster.Client().GetKeyInfo(t.Context(), cluster.KeyID)
	require.NoError(t, err, "the internal key was imported")
	store, _ = s.board.Read()
	require.NotNil(t, store.Connection)

	quiet := s.state()
	s.restart()
	s.until("Ready")
	assert.Equal(t, quiet, s.state(), "a new leader finds everything done")

	cluster.Nodes[2].Kill()
	s.until("Degraded", "garage-a-2 on node node-2 is not connected")
	assert.Equal(t, "True", s.condition(module.StorageReady)["status"], "two of three serve")
	cluster.Nodes[0].Kill()
	s.until("QuorumLost", "1 of 3 replicas is up, at least 2 must be")
	store, _ = s.board.Read()
	assert.Nil(t, store.Connection)
	assert.Equal(t, 1, s.state().Planes[0].LayoutVersion, "the past is not forgotten")
	cluster.Nodes[1].Kill()
	s.pass()
	assert.Equal(t, "QuorumLost", s.condition(module.StorageReady)["reason"], "a store that nobody sees is lost, not starting")
	for _, node := range cluster.Nodes {
		node.Start(t)
	}
	s.until("Ready")
}

func TestOneReplica(t *testing.T) {
	t.Parallel()
	cluster := garagetest.StartWith(t, 1, garagetest.Options{Bare: true})
	s := newStage(t, cluster, fixture.Plan(1))
	s.pass()
	assert.Equal(t, "Starting", s.condition(module.StorageReady)["reason"], "there is no Pod yet")
	require.NoError(t, s.client.Create(t.Context(), fixture.Pod(0)))
	s.until("Ready")
	cluster.Nodes[0].Kill()
	s.until("QuorumLost", "garage-a-0 on node node-0 does not answer")
}

func TestNoPlan(t *testing.T) {
	t.Parallel()
	s := &stage{t: t, client: fixture.Builder(t).WithObjects(module.Object()).Build(), board: backend.NewBoard()}
	s.board.Post(backend.Store{})
	s.planes = plane.New(s.client, &backend.Gateways{}, module.Conditions{Client: s.client, Events: events.NewFakeRecorder(100), Now: time.Now}, s.board)
	result, err := s.planes.Reconcile(t.Context(), reconcile.Request{})
	require.NoError(t, err)
	assert.Zero(t, result)
	_, known := s.board.Read()
	assert.False(t, known, "nobody touches buckets while the module is leaving")
	assert.Nil(t, s.condition(module.StorageReady))
}

func TestBeforeTheFirstBucket(t *testing.T) {
	t.Parallel()
	empty := plan.Plan{
		Storage:   plan.Verdict{Reason: plan.ReasonWaitingForFirstBucket, Message: "Make a SystemBucket."},
		Placement: plan.Verdict{OK: true, Reason: plan.ReasonPlaced, Message: "x"},
	}
	s := &stage{t: t, board: backend.NewBoard()}
	s.client = fixture.Builder(t).WithObjects(module.Object(), fixture.PlanMap(t, empty)).Build()
	s.planes = plane.New(s.client, &backend.Gateways{}, module.Conditions{Client: s.client, Events: events.NewFakeRecorder(100), Now: time.Now}, s.board)
	s.pass()
	storage := s.condition(module.StorageReady)
	assert.Equal(t, "False", storage["status"])
	assert.Equal(t, "WaitingForFirstBucket", storage["reason"])
	assert.Nil(t, s.condition(module.MigrationReady), "the planner has not spoken")
	assert.Empty(t, s.state().Planes)
	store, known := s.board.Read()
	assert.True(t, known)
	assert.False(t, store.Exists)
}

func TestUnreadableStateIsKept(t *testing.T) {
	t.Parallel()
	cluster := garagetest.StartWith(t, 1, garagetest.Options{Bare: true})
	broken := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.StateConfigMap},
		Data:       map[string]string{names.StateKey: "{"},
	}
	s := newStage(t, cluster, fixture.Plan(1), fixture.Pod(0), broken)
	_, err := s.planes.Reconcile(t.Context(), reconcile.Request{})
	require.ErrorContains(t, err, "decode key state.json of ConfigMap data-plane")
	layout, err := cluster.Client().GetClusterLayout(t.Context())
	require.NoError(t, err)
	assert.Zero(t, layout.Version, "nothing was done on a guess")
}

func TestBrokenSecret(t *testing.T) {
	t.Parallel()
	cluster := garagetest.StartWith(t, 1, garagetest.Options{Bare: true})
	cases := map[string]struct {
		reason string
		spoil  func(*corev1.Secret)
		want   string
	}{
		"no token": {"nothing can be asked", func(s *corev1.Secret) { delete(s.Data, names.AdminTokenKey) }, "has no admin-token"},
		"no seed": {
			"the internal key follows from it", func(s *corev1.Secret) { s.Data[names.SeedKey] = []byte("zz") },
			"has no hexadecimal seed",
		},
		"short node key": {
			"the node's id follows from it", func(s *corev1.Secret) { s.Data["node-key-0"] = []byte("short") },
			"has no node-key-0 of 64 bytes",
		},
		"foreign token": {
			"another cluster's Secret", func(s *corev1.Secret) { s.Data[names.AdminTokenKey] = []byte("wrong") },
			"refuses the admin token",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, cluster, fixture.Plan(1), fixture.Pod(0))
			var secret corev1.Secret
			require.NoError(t, s.client.Get(t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: "garage-a"}, &secret))
			c.spoil(&secret)
			require.NoError(t, s.client.Update(t.Context(), &secret))
			s.pass()
			storage := s.condition(module.StorageReady)
			assert.Equal(t, "Starting", storage["reason"], c.reason)
			assert.Contains(t, storage["message"], c.want, c.reason)
			assert.Equal(t, storage["message"], s.state().Planes[0].Problem, "the hooks and the page hear it too")
		})
	}
}

// What is persisted of a migration is not this reconciler's: it stays, and while writes go over nobody touches buckets.
func TestAMigrationIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newStage(t, garagetest.Start(t, 1), fixture.Plan(1), fixture.Pod(0))
	s.until("Ready")
	_, known := s.board.Read()
	require.True(t, known)
	for phase, touchable := range map[plan.Phase]bool{plan.PhaseVerifying: true, plan.PhaseHolding: false, plan.PhaseFencing: false} {
		state := s.state()
		state.Migration = &plan.MigrationState{Source: "a", Target: "b", Phase: phase, Awaited: "a test"}
		encoded, err := json.Marshal(state)
		require.NoError(t, err)
		s.replace(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.StateConfigMap},
			Data:       map[string]string{names.StateKey: string(encoded)},
		})
		s.pass()
		assert.Equal(t, state.Migration, s.state().Migration)
		_, known := s.board.Read()
		assert.Equal(t, touchable, known, "%s", phase)
	}
}
