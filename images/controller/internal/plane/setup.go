package plane

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhouse/system-s3/images/controller/internal/module"
	"github.com/deckhouse/system-s3/lib/names"
)

// Setup adds the reconciler to the manager: whatever changes around the planes leads to the one request.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: names.Namespace, Name: names.PlanConfigMap}}}
	})
	err := builder.ControllerManagedBy(mgr).
		Named("plane").
		Watches(&corev1.ConfigMap{}, all, builder.WithPredicates(predicate.NewPredicateFuncs(isOurConfigMap))).
		Watches(&corev1.Secret{}, all, builder.WithPredicates(predicate.NewPredicateFuncs(isOurs))).
		Watches(&appsv1.StatefulSet{}, all, builder.WithPredicates(predicate.NewPredicateFuncs(isOurs))).
		Watches(&corev1.Pod{}, all, builder.WithPredicates(predicate.NewPredicateFuncs(isGarage))).
		Watches(module.Object(), all, builder.WithPredicates(predicate.NewPredicateFuncs(isModule))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the reconciler of planes: %w", err)
	}
	return nil
}

func isOurs(object client.Object) bool { return object.GetNamespace() == names.Namespace }

func isOurConfigMap(object client.Object) bool {
	return isOurs(object) && (object.GetName() == names.PlanConfigMap || object.GetName() == names.StateConfigMap)
}

func isGarage(object client.Object) bool {
	return isOurs(object) && object.GetLabels()[names.AppLabel] == names.GarageApp
}

func isModule(object client.Object) bool { return object.GetName() == names.Module }
