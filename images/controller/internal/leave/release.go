package leave

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deckhouse/system-s3/images/controller/internal/estate"
	"github.com/deckhouse/system-s3/images/controller/internal/module"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
)

// releaseBuckets takes our finalizer off every SystemBucket, and nobody else's: without us nobody would ever take it off
// one that is deleted. Before, it is written down which buckets they have: the data of those that are deleted while we are
// away, or are being deleted at this moment, is removed after the return.
func (l *Leaver) releaseBuckets(ctx context.Context) (bool, error) {
	var buckets v1alpha1.SystemBucketList
	if err := l.Client.List(ctx, &buckets); err != nil {
		if meta.IsNoMatchError(err) {
			return true, nil // there is no such resource
		}
		return false, fmt.Errorf("list SystemBuckets: %w", err)
	}
	if done, err := l.writeDown(ctx, buckets.Items); err != nil || !done {
		return false, err
	}
	for i := range buckets.Items {
		if done, err := l.release(ctx, &buckets.Items[i]); err != nil || !done {
			return false, err
		}
	}
	return true, nil
}

func (l *Leaver) writeDown(ctx context.Context, buckets []v1alpha1.SystemBucket) (bool, error) {
	var entries []estate.Entry
	for i := range buckets {
		sb := &buckets[i]
		if sb.Status.BucketID == "" {
			continue // it never had one
		}
		entries = append(entries, estate.Entry{
			UID: sb.UID, Namespace: sb.Namespace, Name: sb.Name, Bucket: sb.Status.BucketID, Store: sb.Status.StoreID,
		})
	}
	book := &estate.Book{Reader: l.Client, Writer: l.Client}
	return l.unlessEnabled(ctx, func(ctx context.Context) error {
		if err := book.Put(ctx, entries); err != nil {
			return fmt.Errorf("write down which buckets there are: %w", err)
		}
		return nil
	})
}

const awayMessage = "The module system-s3 is disabled and its store is stopped. Nothing is deleted: the bucket serves again when the module is enabled."

// release tells that the bucket does not serve any more and lets the SystemBucket go.
func (l *Leaver) release(ctx context.Context, sb *v1alpha1.SystemBucket) (bool, error) {
	before := sb.DeepCopy()
	away := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaitingForStorage,
		Message: awayMessage, ObservedGeneration: sb.Generation,
	}
	if sb.DeletionTimestamp.IsZero() && meta.SetStatusCondition(&sb.Status.Conditions, away) {
		done, err := l.unlessEnabled(ctx, func(ctx context.Context) error { return l.patchStatus(ctx, before, sb) })
		if err != nil || !done {
			return false, err
		}
		before = sb.DeepCopy()
	}
	if !controllerutil.RemoveFinalizer(sb, names.Finalizer) {
		return true, nil
	}
	return l.unlessEnabled(ctx, func(ctx context.Context) error { return l.patch(ctx, before, sb) })
}

// withdrawConditions takes our conditions off the Module: nobody would keep them true.
func (l *Leaver) withdrawConditions(ctx context.Context) (bool, error) {
	object := module.Object()
	err := l.Client.Get(ctx, client.ObjectKey{Name: names.Module}, object)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return true, nil // there is nowhere to take them off
	}
	if err != nil {
		return false, fmt.Errorf("read Module %s: %w", names.Module, err)
	}
	present, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return false, fmt.Errorf("read the conditions of Module %s: %w", names.Module, err)
	}
	left := slices.DeleteFunc(slices.Clone(present), isOurs)
	if len(left) == len(present) {
		return true, nil
	}
	if err := unstructured.SetNestedSlice(object.Object, left, "status", "conditions"); err != nil {
		return false, fmt.Errorf("set the conditions of Module %s: %w", names.Module, err)
	}
	// With the resourceVersion of what was read: the platform writes to the same list.
	return l.unlessEnabled(ctx, func(ctx context.Context) error {
		if err := l.Client.Status().Update(ctx, object); err != nil {
			return fmt.Errorf("write the conditions of Module %s: %w", names.Module, err)
		}
		return nil
	})
}

func isOurs(condition any) bool {
	fields, _ := condition.(map[string]any)
	conditionType, _ := fields["type"].(string)
	return slices.Contains([]string{module.StorageReady, module.PlacementReady, module.CapacityReady, module.MigrationReady}, conditionType)
}

// removeItself deletes the Deployment that we run in. One without replicas is the sleeping one of an enabled module.
func (l *Leaver) removeItself(ctx context.Context) (bool, error) {
	var own appsv1.Deployment
	err := l.Client.Get(ctx, client.ObjectKey{Namespace: PlatformNamespace, Name: Deployment}, &own)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read Deployment %s: %w", Deployment, err)
	}
	if ptr.Deref(own.Spec.Replicas, 1) == 0 {
		return false, nil
	}
	return l.unlessEnabled(ctx, func(ctx context.Context) error {
		as := client.Preconditions{UID: &own.UID, ResourceVersion: &own.ResourceVersion}
		if err := l.Client.Delete(ctx, &own, as, client.PropagationPolicy("Background")); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Deployment %s: %w", Deployment, err)
		}
		return nil
	})
}
