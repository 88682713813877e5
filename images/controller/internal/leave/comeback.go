package leave

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

const comeBackInterval = time.Minute

// ComeBack undoes leaving once the module is enabled again. The chart puts back what it prints; but it prints neither
// the volumes' claims nor the StatefulSet's history, and what a leaver changed while the chart was being applied the
// chart does not see again before its next change.
type ComeBack struct {
	// Reader reads from the API itself.
	Reader client.Reader
	Writer client.Writer
}

// Start looks once a minute until the context ends. It runs on the leader only.
func (c *ComeBack) Start(ctx context.Context) error {
	ticker := time.NewTicker(comeBackInterval)
	defer ticker.Stop()
	for {
		if err := c.Pass(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
			log.FromContext(ctx).Error(err, "put back what leaving took")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Pass puts back the label on everything of ours in the namespace and the replicas of the planes. Without a plan, which
// means that the module is leaving, it does nothing.
func (c *ComeBack) Pass(ctx context.Context) error {
	wanted, enabled, err := c.plan(ctx)
	if err != nil || !enabled {
		return err
	}
	if err := c.labelAll(ctx); err != nil {
		return err
	}
	for _, p := range wanted.Planes {
		if err := c.scale(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (c *ComeBack) labelAll(ctx context.Context) error {
	namespace, err := readNamespace(ctx, c.Reader)
	if err != nil {
		return err
	}
	if namespace != nil {
		if err := c.label(ctx, namespace); err != nil {
			return err
		}
	}
	for _, kind := range storeKinds() {
		found, err := list(ctx, c.Reader, kind, client.MatchingLabels{names.ModuleLabel: names.Module})
		if err != nil {
			return err
		}
		for i := range found {
			if err := c.label(ctx, &found[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *ComeBack) plan(ctx context.Context) (plan.Plan, bool, error) {
	var marker corev1.ConfigMap
	err := c.Reader.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.PlanConfigMap}, &marker)
	if apierrors.IsNotFound(err) {
		return plan.Plan{}, false, nil
	}
	if err != nil {
		return plan.Plan{}, false, fmt.Errorf("read the plan: %w", err)
	}
	var p plan.Plan
	if err := json.Unmarshal([]byte(marker.Data[names.PlanKey]), &p); err != nil {
		return plan.Plan{}, false, fmt.Errorf("decode the plan: %w", err)
	}
	return p, marker.DeletionTimestamp.IsZero(), nil
}

func (c *ComeBack) label(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	if object.Labels[names.HeritageLabel] == names.Heritage || !object.DeletionTimestamp.IsZero() {
		return nil
	}
	before := object.DeepCopy()
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	object.Labels[names.HeritageLabel] = names.Heritage
	return c.patch(ctx, before, object)
}

// scale wakes a plane that was put to sleep. Any other number of replicas is the chart's business.
func (c *ComeBack) scale(ctx context.Context, p plan.Plane) error {
	var set appsv1.StatefulSet
	err := c.Reader.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.GarageObject(p.ID)}, &set)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read StatefulSet %s: %w", names.GarageObject(p.ID), err)
	}
	if ptr.Deref(set.Spec.Replicas, 1) != 0 || p.Replicas == 0 {
		return nil
	}
	before := set.DeepCopy()
	set.Spec.Replicas = ptr.To(int32(p.Replicas)) //nolint:gosec // one or three
	return c.patch(ctx, before, &set)
}

func (c *ComeBack) patch(ctx context.Context, before, after client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Writer.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("change %s: %w", after.GetName(), err)
	}
	return nil
}
