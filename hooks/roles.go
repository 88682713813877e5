package main

import (
	"context"

	"github.com/deckhouse/module-sdk/pkg"
	objectpatch "github.com/deckhouse/module-sdk/pkg/object-patch"
	"github.com/deckhouse/module-sdk/pkg/registry"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

var _ = registry.RegisterFunc(rolesConfig(), guarded(retirePlanes))

func rolesConfig() *pkg.HookConfig {
	return &pkg.HookConfig{
		OnBeforeHelm: &pkg.OrderedConfig{Order: orderRoles},
		Kubernetes:   []pkg.KubernetesConfig{silent(statefulSetsBinding()), silent(secretsBinding()), silent(claimsBinding())},
	}
}

// retirePlanes writes on the objects of a plane that goes what it is. The chart, which writes the other roles, prints
// these objects no more; without it nobody would know once the controller's word is lost.
func retirePlanes(_ context.Context, input *pkg.HookInput) error {
	p, err := publishedPlan(input.Values)
	if err != nil {
		return err
	}
	found, err := gatherRemains(input.Snapshots)
	if err != nil {
		return err
	}
	for _, plane := range p.Planes {
		if r := found[plane.ID]; r != nil && plane.Role == plan.RoleRetiring && plane.Frozen == "" {
			r.retire(input, names.GarageObject(plane.ID))
		}
	}
	return nil
}

// retire marks what is not marked yet. The controller may be deleting it at this very moment.
func (r *remains) retire(input *pkg.HookInput, name string) {
	mark := func(version, kind string) {
		input.Logger.Info("its plane retires", "kind", kind, "name", name)
		patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{roleFact: string(plan.RoleRetiring)}}}
		input.PatchCollector.PatchWithMerge(patch, version, kind, names.Namespace, name, objectpatch.WithIgnoreMissingObject(true))
	}
	if r.statefulSet != nil && r.statefulSet.Facts[roleFact] != string(plan.RoleRetiring) {
		mark("apps/v1", "StatefulSet")
	}
	if r.secret != nil && r.secret.Facts[roleFact] != string(plan.RoleRetiring) {
		mark("v1", "Secret")
	}
}
