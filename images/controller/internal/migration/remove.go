package migration

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

var errNotRetiring = errors.New("the plan does not let it go")

// remove deletes what is left of a plane, one kind after the other: the StatefulSet, once its Pods are gone the claims,
// then the Secret and the ConfigMap. The decider has the proof; here only that nothing has changed since.
func (c *Conductor) remove(ctx context.Context, s seen, id string) error {
	if err := c.mayRemove(ctx, s, id); err != nil {
		return fmt.Errorf("delete plane %s: %w", id, err)
	}
	if s.State == nil || !s.State.Phase.Fenced() {
		c.end(ctx, s)
	}
	for _, part := range []func(context.Context, string) (left bool, err error){c.removeSet, c.podsLeft, c.removeClaims} {
		if left, err := part(ctx, id); left || err != nil {
			return err
		}
	}
	for _, object := range []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}} {
		if _, err := c.delete(ctx, object, names.GarageObject(id)); err != nil {
			return err
		}
	}
	return nil
}

// podsLeft tells whether Pods of the plane are still there: a volume goes after the last of them.
func (c *Conductor) podsLeft(ctx context.Context, id string) (left bool, err error) {
	var pods corev1.PodList
	err = c.Fresh.List(ctx, &pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.GarageApp, names.PlaneLabel: id})
	if err != nil {
		return true, fmt.Errorf("list Pods of plane %s: %w", id, err)
	}
	return len(pods.Items) > 0, nil
}

// mayRemove asks past the cache once more whether plan and state still say so.
func (c *Conductor) mayRemove(ctx context.Context, s seen, id string) error {
	state, err := c.readState(ctx)
	if err != nil {
		return err
	}
	if (state.Migration == nil) != (s.State == nil) || s.State != nil && state.Migration.Phase != s.State.Phase {
		return errNotRetiring
	}
	wanted, err := c.planFrom(ctx, c.Fresh)
	if err != nil {
		return err
	}
	for _, p := range wanted.Planes {
		if p.ID == id && p.Role == plan.RoleRetiring && p.Frozen == "" {
			return nil
		}
	}
	return errNotRetiring
}

func (c *Conductor) removeSet(ctx context.Context, id string) (left bool, err error) {
	return c.delete(ctx, &appsv1.StatefulSet{}, names.GarageObject(id))
}

// removeClaims deletes the volumes of the plane's replicas, whatever their number was.
func (c *Conductor) removeClaims(ctx context.Context, id string) (left bool, err error) {
	var claims corev1.PersistentVolumeClaimList
	if err := c.Fresh.List(ctx, &claims, client.InNamespace(names.Namespace)); err != nil {
		return true, fmt.Errorf("list PersistentVolumeClaims: %w", err)
	}
	prefix := strings.TrimSuffix(names.GarageClaim(id, 0), "0")
	for i := range claims.Items {
		claim := &claims.Items[i]
		if ordinal, ours := strings.CutPrefix(claim.Name, prefix); !ours || strings.Trim(ordinal, "0123456789") != "" {
			continue
		}
		left = true
		if err := c.deleteThis(ctx, claim); err != nil {
			return true, err
		}
	}
	return left, nil
}

// delete deletes the object of the name; left tells that it is there still.
func (c *Conductor) delete(ctx context.Context, object client.Object, name string) (left bool, err error) {
	err = c.Fresh.Get(ctx, key(name), object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("read %T %s: %w", object, name, err)
	}
	return true, c.deleteThis(ctx, object)
}

// deleteThis deletes the very object that was read, not one that was made anew under its name.
func (c *Conductor) deleteThis(ctx context.Context, object client.Object) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	log.FromContext(ctx).Info("deleted with its plane", "kind", fmt.Sprintf("%T", object), "name", object.GetName())
	uid := object.GetUID()
	err := c.Client.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %T %s: %w", object, object.GetName(), err)
	}
	return nil
}
