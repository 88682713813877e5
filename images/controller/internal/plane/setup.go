package plane

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
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
		Watches(&corev1.PersistentVolumeClaim{}, all, builder.WithPredicates(predicate.NewPredicateFuncs(isOurs))).
		Watches(&corev1.Node{}, all, builder.WithPredicates(predicate.Funcs{UpdateFunc: placeChanged})).
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

// OnlyPlace leaves of a node, before it is kept in memory, what placement depends on.
func OnlyPlace(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	kept := &corev1.Node{TypeMeta: node.TypeMeta}
	kept.Name, kept.UID, kept.ResourceVersion = node.Name, node.UID, node.ResourceVersion
	kept.Labels, kept.DeletionTimestamp = node.Labels, node.DeletionTimestamp
	kept.Spec.Unschedulable, kept.Spec.Taints = node.Spec.Unschedulable, node.Spec.Taints
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			kept.Status.Conditions = []corev1.NodeCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return kept, nil
}

// placeChanged: most updates of a node are its heartbeats.
func placeChanged(e event.UpdateEvent) bool {
	before, _ := e.ObjectOld.(*corev1.Node)
	after, _ := e.ObjectNew.(*corev1.Node)
	if before == nil || after == nil {
		return true
	}
	return !maps.Equal(before.Labels, after.Labels) || before.DeletionTimestamp != after.DeletionTimestamp ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec) || isReady(*before) != isReady(*after)
}
