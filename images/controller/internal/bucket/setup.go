package bucket

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/estate"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
)

const (
	// workers is how many buckets are worked on at once, so that the deletion of a full one does not hold up the others.
	workers  = 4
	wakeRoom = 1024
)

// Setup adds the reconciler of SystemBuckets and its sweep to the manager.
func Setup(mgr manager.Manager, board *backend.Board) error {
	wake := make(chan event.GenericEvent, wakeRoom)
	inventory := NewInventory()
	reconciler := &Reconciler{
		Client: mgr.GetClient(), Board: board, Events: mgr.GetEventRecorder("system-s3"), Inventory: inventory, Remover: NewRemover(),
	}
	err := builder.ControllerManagedBy(mgr).
		Named("bucket").
		For(&v1alpha1.SystemBucket{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		WatchesRawSource(source.Channel(wake, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(reconciler)
	if err != nil {
		return fmt.Errorf("set up the reconciler of SystemBuckets: %w", err)
	}
	sweep := &Sweep{Client: mgr.GetClient(), Board: board, Inventory: inventory, Wake: wake, Now: time.Now}
	if err := mgr.Add(sweep); err != nil {
		return fmt.Errorf("set up the sweep of SystemBuckets: %w", err)
	}
	executor := &Executor{
		Reader: mgr.GetAPIReader(), Book: &estate.Book{Reader: mgr.GetAPIReader(), Writer: mgr.GetClient()},
		Board: board, Remover: reconciler.Remover, Now: time.Now,
	}
	if err := mgr.Add(executor); err != nil {
		return fmt.Errorf("set up what removes the data of deleted SystemBuckets: %w", err)
	}
	return nil
}
