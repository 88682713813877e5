package plane

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

const mostReplicas = 3

// dropLeft deletes the volumes of replicas that were given up. The proof: the epoch is in force with one copy, and in
// this very epoch it was seen that the replica that stays lacks nothing. The StatefulSet must say by itself that it has
// no other replica.
func (r *Reconciler) dropLeft(ctx context.Context, o outcome) error {
	p := o.Plane
	if !o.alone() || !o.lacksNothing() || !o.arranged() {
		return nil
	}
	var set appsv1.StatefulSet
	key := client.ObjectKey{Namespace: names.Namespace, Name: names.GarageObject(p.ID)}
	if err := r.Client.Get(ctx, key, &set); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !hasOnly(set, p.Survivor) {
		return nil
	}
	for ordinal := range mostReplicas {
		if ordinal == p.Survivor {
			continue
		}
		if err := r.dropClaim(ctx, p.ID, ordinal); err != nil {
			return err
		}
	}
	return nil
}

// alone tells whether the plane has one copy and its epoch is in force.
func (o outcome) alone() bool {
	single := o.Plane.Replicas == 1 && o.Plane.ReplicationFactor == 1 && o.Plane.Frozen == ""
	return single && o.Crossing.Kind == layout.Arrived && !o.Crossing.Shut
}

// lacksNothing tells whether the replica that stays was seen to lack nothing, in this very epoch. In the first epoch no
// other ever had a role. What this pass has seen counts once it is remembered.
func (o outcome) lacksNothing() bool { return o.Plane.Epoch == 1 || o.Previous.Whole >= o.Plane.Epoch }

// hasOnly tells whether the StatefulSet has this replica and no other, and has acted on it.
func hasOnly(set appsv1.StatefulSet, ordinal int) bool {
	start := 0
	if set.Spec.Ordinals != nil {
		start = int(set.Spec.Ordinals.Start)
	}
	return ptr.Deref(set.Spec.Replicas, mostReplicas) == 1 && start == ordinal && set.Status.ObservedGeneration == set.Generation
}

// dropClaim deletes the claim of a replica that has no Pod.
func (r *Reconciler) dropClaim(ctx context.Context, plane string, ordinal int) error {
	var pod corev1.Pod
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.GaragePod(plane, ordinal)}, &pod)
	if !apierrors.IsNotFound(err) {
		return err // it is there still, or nobody knows
	}
	var claim corev1.PersistentVolumeClaim
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.GarageClaim(plane, ordinal)}, &claim)
	if err != nil || claim.DeletionTimestamp != nil {
		return client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("the volume of a replica that was given up is deleted", "claim", claim.Name)
	if err := r.Client.Delete(ctx, &claim, client.Preconditions{UID: &claim.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", claim.Name, err)
	}
	return nil
}

// remember writes a fact about a plane before anything is done that rests on it.
func (r *Reconciler) remember(ctx context.Context, id string, change func(*plan.PlaneState)) error {
	var object corev1.ConfigMap
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.StateConfigMap}, &object); err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	var state plan.State
	if err := json.Unmarshal([]byte(object.Data[names.StateKey]), &state); err != nil {
		return fmt.Errorf("decode key %s of ConfigMap %s: %w", names.StateKey, names.StateConfigMap, err)
	}
	for i := range state.Planes {
		if state.Planes[i].ID == id {
			change(&state.Planes[i])
		}
	}
	encoded, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	changed := object.DeepCopy()
	changed.Data[names.StateKey] = string(encoded)
	if err := r.Client.Update(ctx, changed); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	return nil
}
