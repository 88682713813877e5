package main

import (
	"context"
	"fmt"

	"github.com/deckhouse/module-sdk/pkg"
	objectpatch "github.com/deckhouse/module-sdk/pkg/object-patch"
	"github.com/deckhouse/module-sdk/pkg/registry"

	"github.com/deckhouse/system-s3/lib/names"
)

var _ = registry.RegisterFunc(statefulSetsConfig(), guarded(replaceStatefulSets))

// statefulSetsConfig has no events of its own: the chart, which puts the StatefulSet back, must follow at once.
func statefulSetsConfig() *pkg.HookConfig {
	return &pkg.HookConfig{
		OnBeforeHelm: &pkg.OrderedConfig{Order: orderStatefulSets},
		Kubernetes:   []pkg.KubernetesConfig{silent(statefulSetsBinding())},
	}
}

// replaceStatefulSets deletes a StatefulSet whose claim template has another size than the plan, and leaves its Pods
// and claims running. The template is immutable; a replica created later would start too small.
func replaceStatefulSets(_ context.Context, input *pkg.HookInput) error {
	p, err := publishedPlan(input.Values)
	if err != nil {
		return err
	}
	sets, err := objectpatch.UnmarshalToStruct[statefulSetSnapshot](input.Snapshots, statefulSetsSnapshot)
	if err != nil {
		return fmt.Errorf("read StatefulSets: %w", err)
	}
	for _, s := range sets {
		plane, ok := livingPlane(p, s.Plane)
		if !ok || s.Deleting || bytesOf(s.Size) == plane.VolumeBytes {
			continue
		}
		input.PatchCollector.DeleteNonCascading("apps/v1", "StatefulSet", names.Namespace, s.Name)
	}
	return nil
}
