package bucket

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/names"
)

const (
	// turnInterval is when it is looked again whether a bucket's turn to be deleted has come.
	turnInterval = 2 * time.Second
	// sliceInterval lets others have their turn between two slices of a deletion.
	sliceInterval = 100 * time.Millisecond
)

// dismiss deletes the bucket of a SystemBucket that is being deleted, then lets it go.
func (r *Reconciler) dismiss(ctx context.Context, sb *v1alpha1.SystemBucket, store backend.Store) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(sb, names.Finalizer) {
		return reconcile.Result{}, nil
	}
	// The id is recorded before anybody can put an object into the bucket: without one there is no data to delete. Nor
	// is there any without a plane: a plane that was made once stays in the plan.
	if sb.Status.BucketID == "" || !store.Exists {
		return reconcile.Result{}, r.release(ctx, sb)
	}
	if store.Connection == nil {
		wait := no(v1alpha1.ReasonDeleting, "The objects are deleted when the store is ready again: "+store.Ready.Message)
		return reconcile.Result{}, r.tell(ctx, sb, report{ready: wait})
	}
	state, err := r.Remover.step(ctx, store.Connection, wishOf(sb, store.Connection), func(bucket garage.Bucket) error {
		if err := r.tell(ctx, sb, report{ready: deleting(bucket), bucket: &bucket, name: sb.Status.BucketName, store: store.Connection.Store}); err != nil {
			return apiError{err}
		}
		return nil
	})
	return r.goOn(ctx, sb, state, err)
}

// goOn tells what came of a slice of the deletion, and when the next is due.
func (r *Reconciler) goOn(ctx context.Context, sb *v1alpha1.SystemBucket, state outcome, err error) (reconcile.Result, error) {
	switch {
	case ctx.Err() != nil: // this process ends, or the pass took its time
		return reconcile.Result{RequeueAfter: time.Second}, nil //nolint:nilerr // it goes on where it was
	case isAPI(err):
		return reconcile.Result{}, err
	case err != nil:
		trouble := no(v1alpha1.ReasonDeleting, fmt.Sprintf("The bucket cannot be deleted now and it is tried again: %v.", err))
		return reconcile.Result{RequeueAfter: retryInterval}, r.tell(ctx, sb, report{ready: trouble})
	case state == gone:
		return reconcile.Result{}, r.release(ctx, sb)
	case state == queued:
		queue := no(v1alpha1.ReasonDeleting, "The objects of the bucket are deleted when those of other buckets are gone.")
		return reconcile.Result{RequeueAfter: turnInterval}, r.tell(ctx, sb, report{ready: queue})
	default:
		return reconcile.Result{RequeueAfter: sliceInterval}, nil
	}
}

func (r *Reconciler) release(ctx context.Context, sb *v1alpha1.SystemBucket) error {
	before := sb.DeepCopy()
	controllerutil.RemoveFinalizer(sb, names.Finalizer)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, sb, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	return nil
}
