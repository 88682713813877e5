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
		r := found[plane.ID]
		if plane.Role != plan.RoleRetiring || plane.Frozen != "" || r == nil {
			continue
		}
		if r.statefulSet != nil && r.statefulSet.Facts[roleFact] != string(plan.RoleRetiring) {
			retire(input, "apps/v1", "StatefulSet", plane.ID)
		}
		if r.secret != nil && r.secret.Facts[roleFact] != string(plan.RoleRetiring) {
			retire(input, "v1", "Secret", plane.ID)
		}
	}
	return nil
}

// retire marks one object. The controller may be deleting it at this very moment.
func retire(input *pkg.HookInput, version, kind, id string) {
	name := names.GarageObject(id)
	input.Logger.Info("its plane retires", "kind", kind, "name", name)
	mark := map[string]any{"metadata": map[string]any{"annotations": map[string]any{roleFact: string(plan.RoleRetiring)}}}
	input.PatchCollector.PatchWithMerge(mark, version, kind, names.Namespace, name, objectpatch.WithIgnoreMissingObject(true))
}
