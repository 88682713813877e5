package plane

import (
	"context"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/names"
)

// unmarkedRPCTimeout is what Pods run with that do not tell it: versions before the annotation knew no other value.
const unmarkedRPCTimeout = time.Minute

// markOutdated compares the Pods with the StatefulSet. Without its newest word nobody is outdated.
func (r *Reconciler) markOutdated(ctx context.Context, f facts) (facts, error) {
	var set appsv1.StatefulSet
	key := client.ObjectKey{Namespace: names.Namespace, Name: names.GarageObject(f.Plane.ID)}
	if err := r.Client.Get(ctx, key, &set); err != nil {
		return f, client.IgnoreNotFound(err)
	}
	if set.Status.ObservedGeneration != set.Generation || set.Status.UpdateRevision == "" || set.DeletionTimestamp != nil {
		return f, nil
	}
	marked := f
	marked.Replicas, marked.Spares = outdated(f.Replicas, set), outdated(f.Spares, set)
	return marked, nil
}

func outdated(replicas []replica, set appsv1.StatefulSet) []replica {
	marked := append([]replica(nil), replicas...)
	for i := range marked {
		each := &marked[i]
		each.Outdated = each.Revision != "" && each.Revision != set.Status.UpdateRevision
	}
	return marked
}

// rollSpares restarts replicas without a role, which serve nobody.
func (r *Reconciler) rollSpares(ctx context.Context, f facts) error {
	pods := []string{}
	for _, each := range f.Spares {
		if each.Outdated && each.Exists {
			pods = append(pods, each.Pod)
		}
	}
	return r.restartAll(ctx, f, pods)
}

// restart deletes the Pod, which its StatefulSet makes again from the present template with the same volume. The
// Pod's UID guards against deleting its successor.
func (r *Reconciler) restart(ctx context.Context, f facts, turn layout.Turn) error {
	delete(r.proofs, f.Plane.ID)
	for _, each := range f.Replicas {
		if each.Pod != turn.Pod {
			continue
		}
		log.FromContext(ctx).Info("restart of a replica", "pod", turn.Pod, "message", turn.Message)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: turn.Pod}}
		err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &each.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("restart %s: %w", turn.Pod, err)
		}
	}
	return nil
}

// describeRun takes from a Pod what a restart depends on.
func describeRun(r replica, pod corev1.Pod) replica {
	r.UID, r.Epoch = pod.UID, podEpoch(pod)
	r.Revision = pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	r.RPCTimeout = unmarkedRPCTimeout
	if msec, err := strconv.Atoi(pod.Annotations[names.RPCTimeoutAnnotation]); err == nil && msec > 0 {
		r.RPCTimeout = time.Duration(msec) * time.Millisecond
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == names.GarageContainer && status.State.Running != nil {
			r.Run = status.ContainerID
		}
	}
	r.Trouble = trouble(pod)
	return r
}

// trouble is what keeps a Pod from being ready, in Kubernetes' words.
func trouble(pod corev1.Pod) string {
	statuses := append(append([]corev1.ContainerStatus(nil), pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
	for _, status := range statuses {
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing" {
			return fmt.Sprintf("container %s: %s", status.Name, waiting.Reason)
		}
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
			return fmt.Sprintf("container %s ended with code %d", status.Name, ended.ExitCode)
		}
	}
	return ""
}
