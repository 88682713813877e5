package bucket

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/names"
)

const (
	// passTimeout bounds one pass over a bucket.
	passTimeout = 60 * time.Second
	// retryInterval is when a pass is made again that ended with an error of Garage, which is told in the status.
	retryInterval = 10 * time.Second
)

// Reconciler makes SystemBuckets real.
type Reconciler struct {
	Client    client.Client
	Board     *backend.Board
	Events    events.EventRecorder
	Inventory *Inventory
	Remover   *Remover
}

// Reconcile does one pass over a SystemBucket.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var sb v1alpha1.SystemBucket
	if err := r.Client.Get(ctx, request.NamespacedName, &sb); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	store, known := r.Board.Read()
	if !known {
		// Either the module is leaving, or nobody has looked at the store yet; the board wakes us then.
		return reconcile.Result{}, nil
	}
	result, err := r.pass(ctx, &sb, store)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// What was read is not the newest; that is no error, only a reason to look again.
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	return result, err
}

func (r *Reconciler) pass(ctx context.Context, sb *v1alpha1.SystemBucket, store backend.Store) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	if !sb.DeletionTimestamp.IsZero() {
		return r.dismiss(ctx, sb, store)
	}
	return r.serve(ctx, sb, store)
}

func (r *Reconciler) serve(ctx context.Context, sb *v1alpha1.SystemBucket, store backend.Store) (reconcile.Result, error) {
	// Before anything is made: what exists without the finalizer could be left behind.
	if err := r.addFinalizer(ctx, sb); err != nil {
		return reconcile.Result{}, err
	}
	quotas, err := quotasOf(sb.Spec)
	if err != nil {
		return reconcile.Result{}, r.tell(ctx, sb, report{ready: no(v1alpha1.ReasonInvalidSpec, err.Error()+".")})
	}
	if store.Connection == nil {
		return reconcile.Result{}, r.tell(ctx, sb, report{ready: waiting(store)})
	}
	w := wishOf(sb, store.Connection)
	w.Quotas = quotas
	bucket, err := r.realise(ctx, sb, store.Connection, w)
	if err != nil {
		return r.complain(ctx, sb, err)
	}
	ready := verdict{metav1.ConditionTrue, v1alpha1.ReasonReady, "The bucket serves requests."}
	return reconcile.Result{}, r.tell(ctx, sb, report{ready: ready, bucket: &bucket, name: w.Name, store: store.Connection.Store})
}

func wishOf(sb *v1alpha1.SystemBucket, c *backend.Connection) wish {
	return wish{
		Name: names.Bucket(sb.Namespace, sb.Name, string(sb.UID)), ID: sb.Status.BucketID, Store: sb.Status.StoreID, KeyID: c.KeyID,
	}
}

// apiError is an error of Kubernetes in the middle of work with Garage: no fault of the bucket.
type apiError struct{ error }

func (e apiError) Unwrap() error { return e.error }

func isAPI(err error) bool {
	var api apiError
	return errors.As(err, &api)
}

func (r *Reconciler) realise(
	ctx context.Context, sb *v1alpha1.SystemBucket, c *backend.Connection, w wish,
) (garage.Bucket, error) {
	bucket, err := r.look(ctx, sb, c, w)
	if err != nil {
		return bucket, err
	}
	if !fits(bucket, w) {
		if bucket, err = shape(ctx, c.Admin, bucket, w); err != nil {
			return bucket, err
		}
		r.Inventory.note(c, bucket)
	}
	if err := r.publish(ctx, sb, parameters(sb, w.Name, c.CA)); err != nil {
		return bucket, apiError{err}
	}
	return bucket, nil
}

// look is what the bucket is in Garage: as the inventory has it if that is as wished, else as Garage says when it is asked
// for this one, since a change is made of what is there now.
func (r *Reconciler) look(ctx context.Context, sb *v1alpha1.SystemBucket, c *backend.Connection, w wish) (garage.Bucket, error) {
	if w.ID != "" {
		bucket, known, err := r.Inventory.bucket(ctx, c, w.ID)
		if err != nil || known && fits(bucket, w) {
			return bucket, err
		}
	}
	bucket, err := find(ctx, c, w, func(id string, lost bool) error { return r.record(ctx, sb, origin{id, c.Store, lost}) })
	if err != nil {
		return bucket, err
	}
	r.Inventory.note(c, bucket)
	return bucket, nil
}

// complain tells what is wrong with the bucket, and when to try again.
func (r *Reconciler) complain(ctx context.Context, sb *v1alpha1.SystemBucket, err error) (reconcile.Result, error) {
	switch {
	case errors.Is(err, errForeign):
		return reconcile.Result{RequeueAfter: retryInterval}, r.tell(ctx, sb, report{ready: no(v1alpha1.ReasonInvalidSpec, err.Error()+".")})
	case isAPI(err):
		return reconcile.Result{}, err
	case errors.Is(err, errVanished):
		return reconcile.Result{RequeueAfter: retryInterval}, r.tell(ctx, sb, report{ready: vanished(sb.Status.BucketID)})
	default:
		return reconcile.Result{RequeueAfter: retryInterval}, r.tell(ctx, sb, report{ready: backendError(err)})
	}
}

func (r *Reconciler) addFinalizer(ctx context.Context, sb *v1alpha1.SystemBucket) error {
	before := sb.DeepCopy()
	if !controllerutil.AddFinalizer(sb, names.Finalizer) {
		return nil
	}
	// The list is replaced as a whole: the resourceVersion keeps us from dropping somebody else's finalizer.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, sb, patch); err != nil {
		return fmt.Errorf("add the finalizer: %w", err)
	}
	return nil
}

// origin is where a bucket comes from.
type origin struct {
	id, store string
	lost      bool // an earlier bucket is gone with the store it was in
}

// record stores the bucket's id before the bucket is used, and in the same breath that an earlier one is lost: a crash in
// between must not hide it.
func (r *Reconciler) record(ctx context.Context, sb *v1alpha1.SystemBucket, o origin) error {
	before := sb.DeepCopy()
	sb.Status.BucketID, sb.Status.StoreID = o.id, o.store
	if o.lost {
		set(sb, v1alpha1.ConditionDataLost, dataLost(before.Status))
	}
	if err := r.Client.Status().Update(ctx, sb); err != nil {
		return apiError{fmt.Errorf("record the bucket's id: %w", err)}
	}
	r.announce(before, sb)
	return nil
}

// report is what a pass found out. Without a bucket, use and quota stay as they were told last.
type report struct {
	ready  verdict
	bucket *garage.Bucket
	name   string
	store  string
}

// tell writes the status, only when it changes, and an event when the bucket becomes ready or stops being so.
func (r *Reconciler) tell(ctx context.Context, sb *v1alpha1.SystemBucket, found report) error {
	before := sb.DeepCopy()
	sb.Status.ObservedGeneration = sb.Generation
	if found.bucket != nil {
		sb.Status.BucketName, sb.Status.BucketID, sb.Status.StoreID = found.name, found.bucket.ID, found.store
		measure(sb, *found.bucket)
	}
	set(sb, v1alpha1.ConditionReady, found.ready)
	if equality.Semantic.DeepEqual(before.Status, sb.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, sb); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	r.announce(before, sb)
	return nil
}

// measure puts use and limits into the status. The quotas of a bucket that is being deleted are nobody's business.
func measure(sb *v1alpha1.SystemBucket, bucket garage.Bucket) {
	sb.Status.Used, sb.Status.Objects = use(bucket.Bytes), &bucket.Objects
	if sb.DeletionTimestamp.IsZero() {
		sb.Status.Quota = limits(bucket.Quotas)
		set(sb, v1alpha1.ConditionQuotaAvailable, quota(bucket))
	}
}

func set(sb *v1alpha1.SystemBucket, conditionType string, v verdict) {
	meta.SetStatusCondition(&sb.Status.Conditions, metav1.Condition{
		Type: conditionType, Status: v.Status, Reason: v.Reason, Message: v.Message, ObservedGeneration: sb.Generation,
	})
}

// announce makes an event of a changed reason of a condition: what happened, not what is.
func (r *Reconciler) announce(before, after *v1alpha1.SystemBucket) {
	for _, now := range after.Status.Conditions {
		was := meta.FindStatusCondition(before.Status.Conditions, now.Type)
		if was != nil && was.Reason == now.Reason || was == nil && now.Reason == v1alpha1.ReasonWithinQuota {
			continue
		}
		r.Events.Eventf(after, nil, eventType(now), now.Reason, "Observe", "%s", now.Message)
	}
}

func eventType(c metav1.Condition) string {
	switch c.Reason {
	case v1alpha1.ReasonBackendError, v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonNoStorageClass,
		v1alpha1.ReasonQuotaReached, v1alpha1.ReasonNearQuota, v1alpha1.ReasonStoreMadeAnew:
		return corev1.EventTypeWarning
	default:
		return corev1.EventTypeNormal
	}
}
