package plane_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/images/controller/internal/module"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

// pod is a ready Pod made from a revision of the template.
func pod(ordinal int, revision string) *corev1.Pod {
	made := fixture.Pod(ordinal)
	made.UID = types.UID(revision + made.Name)
	made.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	made.Annotations = map[string]string{names.RPCTimeoutAnnotation: "10000"}
	made.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: names.GarageContainer, ContainerID: "containerd://" + string(made.UID),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	return made
}

// failing is a Pod whose Garage does not start.
func failing(ordinal int, revision string) *corev1.Pod {
	made := pod(ordinal, revision)
	made.Status.Conditions[0].Status = corev1.ConditionFalse
	made.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	return made
}

func statefulSet(revision string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.GarageObject("a")},
		Status:     appsv1.StatefulSetStatus{UpdateRevision: revision},
	}
}

func (s *stage) exists(object client.Object) bool {
	s.t.Helper()
	err := s.client.Get(s.t.Context(), client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
	require.NoError(s.t, client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

func (s *stage) message() string {
	message, _ := s.condition(module.StorageReady)["message"].(string)
	return message
}

// TestRoll: a changed template restarts one replica at a time, the next one only behind the gate; one that does not
// start stops the roll, and a mended template replaces it at once.
func TestRoll(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 3)
	set := statefulSet("old")
	s := newStage(t, cluster, fixture.Plan(3), pod(0, "old"), pod(1, "old"), pod(2, "old"), set)
	s.until("Ready")
	assert.Equal(t, "The store serves all requests.", s.message(), "nothing restarts when nothing changed")

	set.Status.UpdateRevision = "new"
	require.NoError(t, s.client.Status().Update(t.Context(), set))
	s.pass()
	assert.Contains(t, s.message(), "3 of 3 replicas wait for a restart")
	assert.Contains(t, s.message(), "before garage-a-2 can be restarted:")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		s.pass()
		assert.False(c, s.exists(fixture.Pod(2)), s.message())
	}, 2*time.Minute, 200*time.Millisecond)
	s.pass()
	assert.Contains(t, s.message(), "garage-a-2 (has no Pod)")

	require.NoError(t, s.client.Create(t.Context(), failing(2, "new")))
	for range 3 {
		s.pass()
	}
	assert.Contains(t, s.message(), "until these are ready: garage-a-2 (container garage: CrashLoopBackOff)")
	assert.True(t, s.exists(fixture.Pod(0)) && s.exists(fixture.Pod(1)) && s.exists(fixture.Pod(2)), "the roll stops at the first")

	set.Status.UpdateRevision = "mended"
	require.NoError(t, s.client.Status().Update(t.Context(), set))
	s.pass()
	assert.False(t, s.exists(fixture.Pod(2)), "it serves nothing, so there is nothing to wait for")
	assert.True(t, s.exists(fixture.Pod(0)) && s.exists(fixture.Pod(1)))

	require.NoError(t, s.client.Create(t.Context(), pod(2, "mended")))
	s.pass()
	assert.Contains(t, s.message(), "before garage-a-1 can be restarted: the replicas begin to compare their tables", "each restart has a proof of its own")
	s.restart()
	s.pass()
	assert.Contains(t, s.message(), "begin to compare", "a new leader takes over no proof")
	assert.True(t, s.exists(fixture.Pod(1)))
}

func TestTheOnlyReplicaIsRestartedAtOnce(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	set := statefulSet("new")
	set.Generation = 2 // its status is not the newest word
	s := newStage(t, cluster, fixture.Plan(1), pod(0, "old"), set)
	s.until("Ready")
	assert.True(t, s.exists(fixture.Pod(0)), "whether it is outdated is not known yet")
	set.Status.ObservedGeneration = 2
	require.NoError(t, s.client.Status().Update(t.Context(), set))
	s.pass()
	assert.False(t, s.exists(fixture.Pod(0)))
}
