package main

import (
	"context"
	"fmt"

	"github.com/deckhouse/module-sdk/pkg"
	objectpatch "github.com/deckhouse/module-sdk/pkg/object-patch"
	"github.com/deckhouse/module-sdk/pkg/registry"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

var _ = registry.RegisterFunc(claimsConfig(), guarded(growClaims))

func claimsConfig() *pkg.HookConfig {
	return &pkg.HookConfig{
		OnBeforeHelm: &pkg.OrderedConfig{Order: orderClaims},
		Kubernetes:   []pkg.KubernetesConfig{claimsBinding(), classesBinding()},
	}
}

// growClaims asks for the planned size on every claim that is smaller, where the class allows it. A claim that is not
// bound yet cannot be changed; it wakes this hook when it is.
func growClaims(_ context.Context, input *pkg.HookInput) error {
	if !input.Values.Exists(planPath) {
		return nil // the first synchronization; the plan comes before the chart
	}
	p, err := publishedPlan(input.Values)
	if err != nil {
		return err
	}
	expandable, err := expandableClasses(input.Snapshots)
	if err != nil {
		return err
	}
	claims, err := objectpatch.UnmarshalToStruct[claimSnapshot](input.Snapshots, claimsSnapshot)
	if err != nil {
		return fmt.Errorf("read PersistentVolumeClaims: %w", err)
	}
	for _, c := range claims {
		plane, ok := livingPlane(p, c.Plane)
		if ok && c.Bound && expandable[c.Class] && bytesOf(c.Size) < plane.VolumeBytes {
			input.PatchCollector.PatchWithMerge(storageRequest(plane.VolumeSize), "v1", "PersistentVolumeClaim", names.Namespace, c.Name)
		}
	}
	return nil
}

func expandableClasses(snapshots pkg.Snapshots) (map[string]bool, error) {
	classes, err := observeClasses(snapshots)
	if err != nil {
		return nil, err
	}
	expandable := map[string]bool{}
	for _, c := range classes {
		expandable[c.Name] = c.Expandable
	}
	return expandable, nil
}

// livingPlane is the plane of the id, unless it is to be left as it is.
func livingPlane(p plan.Plan, id string) (plan.Plane, bool) {
	for _, plane := range p.Planes {
		if plane.ID == id && plane.Frozen == "" {
			return plane, true
		}
	}
	return plan.Plane{}, false
}

func storageRequest(size string) map[string]any {
	return map[string]any{"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": size}}}}
}
