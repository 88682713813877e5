package leave

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
)

// lost is how long after the end of its grace period a Pod is taken for one on a node that is gone: such a Pod stays
// until its node is removed, and what it did it does no more.
const lost = time.Minute

// stopGarage scales every plane to nothing. The volumes stay.
func (l *Leaver) stopGarage(ctx context.Context) (bool, error) {
	var sets appsv1.StatefulSetList
	if err := l.Client.List(ctx, &sets, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.GarageApp}); err != nil {
		return false, fmt.Errorf("list StatefulSets: %w", err)
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		if ptr.Deref(set.Spec.Replicas, 1) == 0 {
			continue
		}
		before := set.DeepCopy()
		set.Spec.Replicas = ptr.To(int32(0))
		done, err := l.unlessEnabled(ctx, func(ctx context.Context) error { return l.patch(ctx, before, set) })
		if err != nil || !done {
			return false, err
		}
	}
	return l.endOrphans(ctx, sets.Items)
}

// endOrphans ends the Pods of Garage that no StatefulSet would end: a growing plane is without its StatefulSet for a
// moment, and whoever was to put it back may have been stopped right then.
func (l *Leaver) endOrphans(ctx context.Context, sets []appsv1.StatefulSet) (bool, error) {
	var pods corev1.PodList
	if err := l.Client.List(ctx, &pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.GarageApp}); err != nil {
		return false, fmt.Errorf("list Pods of Garage: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		owned := slices.ContainsFunc(sets, func(set appsv1.StatefulSet) bool { return metav1.IsControlledBy(pod, &set) })
		if owned || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		done, err := l.unlessEnabled(ctx, func(ctx context.Context) error {
			if err := l.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("end Pod %s, which has no StatefulSet: %w", pod.Name, err)
			}
			return nil
		})
		if err != nil || !done {
			return false, err
		}
	}
	return true, nil
}

// podsEnded tells whether nothing of the module runs. A controller that still ends could put its finalizer back.
func (l *Leaver) podsEnded(ctx context.Context) (bool, error) {
	var pods corev1.PodList
	if err := l.Client.List(ctx, &pods, client.InNamespace(names.Namespace)); err != nil {
		return false, fmt.Errorf("list Pods: %w", err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; ours(pod) && !l.ended(pod) {
			return false, nil
		}
	}
	return true, nil
}

func ours(pod *corev1.Pod) bool {
	app := pod.Labels[names.AppLabel]
	return app == names.GarageApp || app == names.ControllerApp
}

// ended tells whether the Pod does nothing any more. The deletion timestamp is the end of the grace period.
func (l *Leaver) ended(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	return pod.DeletionTimestamp != nil && l.Now().Sub(pod.DeletionTimestamp.Time) > lost
}

// patch writes what changed, if nobody has changed the object in between.
func (l *Leaver) patch(ctx context.Context, before, after client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := l.Client.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("change %s: %w", after.GetName(), err)
	}
	return nil
}

// patchStatus is patch for what an object says of its state.
func (l *Leaver) patchStatus(ctx context.Context, before, after client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := l.Client.Status().Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("change the status of %s: %w", after.GetName(), err)
	}
	return nil
}
