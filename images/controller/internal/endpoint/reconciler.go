package endpoint

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
)

// Reconciler writes the EndpointSlices of Service s3. All of its work is one request.
type Reconciler struct {
	Client client.Client
}

// Reconcile makes the slices what the buckets and Service s3-gateway ask for. Without either Service, which the chart
// makes and removes, there is nothing to do: the slices go with their Service.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	err := r.pass(ctx)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		// What was read is not the newest; that is no error, only a reason to look again.
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	return reconcile.Result{}, err
}

func (r *Reconciler) pass(ctx context.Context) error {
	w, complete, err := r.wish(ctx)
	if err != nil || !complete {
		return err
	}
	var present discoveryv1.EndpointSliceList
	err = r.Client.List(ctx, &present, client.InNamespace(names.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: names.S3Service, discoveryv1.LabelManagedBy: managedBy})
	if err != nil {
		return fmt.Errorf("list EndpointSlices: %w", err)
	}
	return r.write(ctx, present.Items, pack(fitting(present.Items, w.Family), w))
}

func (r *Reconciler) wish(ctx context.Context) (wish, bool, error) {
	w := wish{Service: &corev1.Service{}}
	var gateway corev1.Service
	for name, service := range map[string]*corev1.Service{names.S3Service: w.Service, names.GatewayService: &gateway} {
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: name}, service)
		if client.IgnoreNotFound(err) != nil {
			return w, false, fmt.Errorf("read Service %s: %w", name, err)
		}
	}
	if !alive(w.Service) || !alive(&gateway) {
		return w, false, nil
	}
	address, err := netip.ParseAddr(gateway.Spec.ClusterIP)
	if err != nil {
		return w, false, nil //nolint:nilerr // the apiserver has not given one yet
	}
	w.Address, w.Family = address.String(), discoveryv1.AddressTypeIPv4
	if address.Is6() {
		w.Family = discoveryv1.AddressTypeIPv6
	}
	var buckets v1alpha1.SystemBucketList
	if err := r.Client.List(ctx, &buckets, client.UnsafeDisableDeepCopy); err != nil { // thousands, and only read
		return w, false, fmt.Errorf("list SystemBuckets: %w", err)
	}
	for i := range buckets.Items {
		if name := buckets.Items[i].Status.BucketName; name != "" {
			w.Buckets = append(w.Buckets, name)
		}
	}
	return w, true, nil
}

// alive tells whether a Service was found and is not on its way out.
func alive(service *corev1.Service) bool {
	return service.UID != "" && service.DeletionTimestamp == nil
}

// fitting leaves out slices of another address family: a slice's family never changes.
func fitting(present []discoveryv1.EndpointSlice, family discoveryv1.AddressType) []discoveryv1.EndpointSlice {
	var kept []discoveryv1.EndpointSlice
	for _, slice := range present {
		if slice.AddressType == family {
			kept = append(kept, slice)
		}
	}
	return kept
}

func (r *Reconciler) write(ctx context.Context, present, wanted []discoveryv1.EndpointSlice) error {
	left := make(map[string]discoveryv1.EndpointSlice, len(present))
	for _, slice := range present {
		left[slice.Name] = slice
	}
	for _, slice := range wanted {
		old, exists := left[slice.Name]
		delete(left, slice.Name)
		if err := r.put(ctx, old, slice, exists); err != nil {
			return err
		}
	}
	for _, slice := range left {
		if err := r.Client.Delete(ctx, &slice); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete EndpointSlice %s: %w", slice.Name, err)
		}
	}
	return nil
}

func (r *Reconciler) put(ctx context.Context, old, slice discoveryv1.EndpointSlice, exists bool) error {
	if !exists {
		if err := r.Client.Create(ctx, &slice); err != nil {
			return fmt.Errorf("create EndpointSlice %s: %w", slice.Name, err)
		}
		return nil
	}
	if equality.Semantic.DeepEqual(old.Endpoints, slice.Endpoints) && equality.Semantic.DeepEqual(old.Ports, slice.Ports) &&
		equality.Semantic.DeepEqual(old.Labels, slice.Labels) {
		return nil
	}
	slice.ResourceVersion = old.ResourceVersion
	if err := r.Client.Update(ctx, &slice); err != nil {
		return fmt.Errorf("write EndpointSlice %s: %w", slice.Name, err)
	}
	return nil
}

// Setup adds the reconciler to the manager.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: names.Namespace, Name: names.S3Service}}}
	})
	ours := builder.WithPredicates(predicate.NewPredicateFuncs(func(object client.Object) bool {
		return object.GetNamespace() == names.Namespace
	}))
	err := builder.ControllerManagedBy(mgr).
		Named("endpoint").
		Watches(&corev1.Service{}, all, ours).
		Watches(&discoveryv1.EndpointSlice{}, all, ours).
		Watches(&v1alpha1.SystemBucket{}, all, builder.WithPredicates(nameChanged())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the reconciler of EndpointSlices: %w", err)
	}
	return nil
}

// nameChanged lets pass what changes the set of bucket names, and not the minutely news of their use.
func nameChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, _ := e.ObjectOld.(*v1alpha1.SystemBucket)
		after, _ := e.ObjectNew.(*v1alpha1.SystemBucket)
		return before == nil || after == nil || before.Status.BucketName != after.Status.BucketName
	}}
}
