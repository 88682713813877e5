package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

// TestBadMoments disables the module at moments at which something else is going on, each time enables it again and
// reads back what was written before. It is behind a verb of its own, `make leaving`: it takes a while. Together with
// chapters of TestLeaving these are the ways to leave at a bad moment:
//
//	 1 without a confirmation                TestLeaving
//	 2 twice                                 TestLeaving
//	 3 by a purge, without any hook          TestLeaving
//	 4 with a leaver that is killed          TestLeaving
//	 5 and enabled again in the middle       TestLeaving
//	 6 while a bucket is being deleted       TestLeaving
//	 7 with somebody else's finalizer        TestLeaving
//	 8 with a controller that is crashed     here, as the following
//	 9 with a Pod that is Pending
//	10 while the volumes grow
//	11 with the platform's webhook away
//	12 while a bucket is being made
//	13 while a client writes
//	14 right after Garage was killed
//	15 right after it was enabled
func TestBadMoments(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			site.Diagnose(ctx, namespace, systemSpace)
		}
	})
	s := &leaving{story: story{ledger: &ledger{}}}
	require.True(t, t.Run("a store with an object", s.begins))
	moments := []struct {
		name   string
		reason string
		come   func(*testing.T) (undo func(*testing.T))
	}{
		{"the controller is crashed", "nobody is there to end in order", s.crashesController},
		{"a Pod is Pending", "such a Pod is not waited for", s.leavesPodPending},
		{"the volumes grow", "the StatefulSet may just be missing", s.grows},
		{"the webhook is away", "only the first word passes it", s.losesWebhook},
		{"a bucket is being made", "its finalizer may come late", s.makesBucket},
		{"a client writes", "what was acknowledged stays", s.hasWriter},
		{"Garage was killed", "it recovers when it is started next", s.killsGarage},
		{"it was just enabled", "the store may not have come up yet", s.justReturned},
	}
	for _, m := range moments {
		require.True(t, t.Run(m.name, func(t *testing.T) {
			undo := m.come(t)
			require.NoError(t, site.Disable(t.Context()), m.reason)
			undo(t)
			s.hasLeft(t)
			s.returns(t)
			if s.after != nil {
				s.after(t)
				s.after = nil
			}
		}), "later moments need a store that works")
	}
}

func nothing(*testing.T) {}

// crashesController makes the controller's Pods unable to start, then kills them.
func (*leaving) crashesController(t *testing.T) func(*testing.T) {
	ctx := t.Context()
	patch := client.RawPatch("application/strategic-merge-patch+json", []byte(
		`{"spec":{"template":{"spec":{"containers":[{"name":"controller","args":["--no-such-flag"]}]}}}}`))
	controller := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.ControllerApp}}
	require.NoError(t, site.Deckhouse.Patch(ctx, controller, patch))
	require.NoError(t, site.Deckhouse.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.ControllerApp}))
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the controller to crash", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		pods := &corev1.PodList{}
		err := site.Admin.List(ctx, pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.ControllerApp})
		for i := range pods.Items {
			for _, status := range pods.Items[i].Status.ContainerStatuses {
				if status.RestartCount > 0 && !status.Ready {
					return true, "", nil
				}
			}
		}
		return false, "", err
	}}))
	return nothing
}

// cordon lets Pods onto no node, or onto all.
func cordon(ctx context.Context, closed bool) error {
	nodes := &corev1.NodeList{}
	if err := site.Admin.List(ctx, nodes); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, closed))
		if err := site.Deckhouse.Patch(ctx, &nodes.Items[i], patch); err != nil {
			return fmt.Errorf("cordon %s: %w", nodes.Items[i].Name, err)
		}
	}
	return nil
}

// awayPod takes a Pod of Garage away and lets it come back nowhere until the test ends or the nodes are open again.
func awayPod(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, cordon(ctx, true))
	t.Cleanup(func() { _ = cordon(context.Background(), false) })
	pods := &corev1.PodList{}
	require.NoError(t, site.Admin.List(ctx, pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.GarageApp}))
	for i := range pods.Items {
		require.NoError(t, site.Deckhouse.Delete(ctx, &pods.Items[i]))
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.GaragePod(plane, 0)}}
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the Pod to be Pending", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		err := site.Admin.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending && pod.Spec.NodeName == "", "", client.IgnoreNotFound(err)
	}}))
}

// leavesPodPending lets no Pod onto any node, then takes a Pod of Garage away.
func (*leaving) leavesPodPending(t *testing.T) func(*testing.T) {
	awayPod(t)
	// The leaver needs a node, too: it waits for one as long as it takes.
	return func(t *testing.T) { require.NoError(t, cordon(t.Context(), false)) }
}

// grows asks for more than the volumes hold: the StatefulSet is made anew with a larger template.
func (s *leaving) grows(t *testing.T) func(*testing.T) {
	bucket, _, err := site.ReadBucket(t.Context(), mainKey())
	require.NoError(t, err)
	size := bucket.Spec.Size.DeepCopy()
	size.Add(resource.MustParse("5Gi"))
	require.NoError(t, site.Bucket(t.Context(), mainKey(), size.String()))
	s.renewed = "StatefulSet " + names.GarageObject(plane)
	return nothing
}

// losesWebhook takes the platform's webhooks away as soon as the module was told to leave.
func (*leaving) losesWebhook(*testing.T) func(*testing.T) {
	return func(t *testing.T) {
		ctx := t.Context()
		t.Cleanup(func() { require.NoError(t, platform(context.Background(), "start-standins")) })
		require.NoError(t, platform(ctx, "stop-standins"))
		require.Error(t, site.Configure(ctx, true, nil), "nobody is there to judge")
		require.NoError(t, platform(ctx, "start-standins"))
	}
}

// makesBucket asks for a bucket at that very moment. Whatever became of it, it is no harm.
func (*leaving) makesBucket(t *testing.T) func(*testing.T) {
	require.NoError(t, site.Bucket(t.Context(), client.ObjectKey{Namespace: namespace, Name: "late"}, "10Mi"))
	return func(t *testing.T) {
		late := &v1alpha1.SystemBucket{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "late"}}
		t.Cleanup(func() { _ = site.Admin.Delete(context.Background(), late) })
	}
}

// hasWriter lets a client write until the store is gone; what was acknowledged is read after the return.
func (s *leaving) hasWriter(t *testing.T) func(*testing.T) {
	d, bucket := s.door(t), bucketName(t, mainBucket)
	writer := d.s3(aws.NewCredentialsCache(d.of(leavingAccount, mainBucket, "")))
	begun, acknowledged := make(chan struct{}), make(chan int, 1)
	go func() {
		for n := 0; ; n++ {
			err := put(context.Background(), writer, bucket, fmt.Sprintf("while leaving/%d", n), s.content[:1000])
			if n == 0 {
				close(begun)
			}
			if err != nil {
				acknowledged <- n
				return
			}
		}
	}()
	<-begun
	s.after = func(t *testing.T) {
		count := <-acknowledged
		require.Positive(t, count)
		t.Logf("%d writes were acknowledged", count)
		d := s.door(t)
		reader := d.s3(aws.NewCredentialsCache(d.of(leavingAccount, mainBucket, "")))
		for n := range count {
			_, err := get(t.Context(), reader, bucket, fmt.Sprintf("while leaving/%d", n))
			require.NoError(t, err, "an acknowledged write")
		}
	}
	return nothing
}

// killsGarage kills a Pod of Garage with all its processes.
func (*leaving) killsGarage(t *testing.T) func(*testing.T) {
	pod := &corev1.Pod{}
	require.NoError(t, site.Admin.Get(t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: names.GaragePod(plane, 0)}, pod))
	require.NoError(t, killContainers(t.Context(), pod, map[string]bool{}))
	return nothing
}

// justReturned leaves once before, so that the store is about to come up.
func (s *leaving) justReturned(t *testing.T) func(*testing.T) {
	require.NoError(t, site.Disable(t.Context()))
	s.hasLeft(t)
	require.NoError(t, site.Configure(t.Context(), true, nil))
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "the module to begin", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		err := site.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.PlanConfigMap}, &corev1.ConfigMap{})
		return err == nil, "", client.IgnoreNotFound(err)
	}}))
	return nothing
}
