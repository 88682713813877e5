package main

import (
	"context"
	"fmt"
	"strings"

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
		Kubernetes:   []pkg.KubernetesConfig{claimsBinding(), classesBinding(), stateBinding()},
	}
}

// growClaims asks for the planned size on the claim whose turn it is. The claim wakes this hook when its growth goes on
// or fails, and then it is the next one's turn.
func growClaims(_ context.Context, input *pkg.HookInput) error {
	if !input.Values.Exists(planPath) {
		return nil // the first synchronization; the plan comes before the chart
	}
	p, err := publishedPlan(input.Values)
	if err != nil {
		return err
	}
	classes, err := observeClasses(input.Snapshots)
	if err != nil {
		return err
	}
	claims, err := observeClaims(input.Snapshots)
	if err != nil {
		return err
	}
	for id := range claims {
		plane, ok := livingPlane(p, id)
		if !ok {
			continue
		}
		for _, name := range plan.NextClaims(plane, claims[id], classes) {
			input.Logger.Info("a claim is asked to grow", "claim", name, "size", plane.VolumeSize)
			input.PatchCollector.PatchWithMerge(storageRequest(plane.VolumeSize), "v1", "PersistentVolumeClaim", names.Namespace, name)
		}
	}
	return nil
}

// observeClaims gathers the claims of each plane, with what the controller measured on them.
func observeClaims(snapshots pkg.Snapshots) (map[string][]plan.Claim, error) {
	found, err := objectpatch.UnmarshalToStruct[claimSnapshot](snapshots, claimsSnapshot)
	if err != nil {
		return nil, fmt.Errorf("read PersistentVolumeClaims: %w", err)
	}
	states, err := objectpatch.UnmarshalToStruct[plan.State](snapshots, stateSnapshot)
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", names.StateConfigMap, err)
	}
	measured := map[string]plan.ReplicaState{}
	for _, s := range states {
		for _, p := range s.Planes {
			for _, r := range p.Replicas {
				measured[names.GarageClaim(p.ID, r.Ordinal)] = r
			}
		}
	}
	claims := map[string][]plan.Claim{}
	for _, c := range found {
		claims[c.Plane] = append(claims[c.Plane], c.claim(measured[c.Name]))
	}
	return claims, nil
}

// mostFailure bounds what is told of the storage's own words, in bytes.
const mostFailure = 300

func (c claimSnapshot) claim(r plan.ReplicaState) plan.Claim {
	failure := c.Failure
	if len(failure) > mostFailure {
		failure = strings.ToValidUTF8(failure[:mostFailure], "")
	}
	return plan.Claim{
		Name: c.Name, Class: c.Class, Bytes: bytesOf(c.Size), Capacity: bytesOf(c.Capacity), Bound: c.Bound, Deleting: c.Deleting,
		AwaitsPod: c.AwaitsPod, Failure: strings.Join(strings.Fields(failure), " "), Up: r.Up, Node: r.Node, Stale: r.Stale, Full: r.Full, FullBytes: r.ClaimBytes,
	}
}

// livingPlane is the plane of the id, unless it is to be left as it is or goes.
func livingPlane(p plan.Plan, id string) (plan.Plane, bool) {
	for _, plane := range p.Planes {
		if plane.ID == id && plane.Frozen == "" && plane.Role != plan.RoleRetiring {
			return plane, true
		}
	}
	return plan.Plane{}, false
}

func storageRequest(size string) map[string]any {
	return map[string]any{"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": size}}}}
}
