package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/deckhouse/module-sdk/pkg"
	"github.com/deckhouse/module-sdk/pkg/registry"
	"github.com/tidwall/gjson"

	"github.com/deckhouse/system-s3/lib/plan"
)

// planesPath is where the secrets of the planes are published for the chart.
const planesPath = "systemS3.internal.planes"

var (
	errNoPlan     = errors.New("the plan is not made yet")
	errSecretGone = errors.New("it is gone")
)

var _ = registry.RegisterFunc(secretsConfig(), guarded(keepSecrets))

func secretsConfig() *pkg.HookConfig {
	return &pkg.HookConfig{
		OnBeforeHelm: &pkg.OrderedConfig{Order: orderSecrets},
		Kubernetes:   []pkg.KubernetesConfig{silent(statefulSetsBinding()), silent(secretsBinding()), silent(claimsBinding())},
	}
}

// keepSecrets publishes the secrets of every plane: read back from the plane's Secret, else from the values when the
// Secret was deleted while we ran, else made, which happens once in the life of a plane.
func keepSecrets(_ context.Context, input *pkg.HookInput) error {
	p, err := publishedPlan(input.Values)
	if err != nil {
		return err
	}
	found, err := gatherRemains(input.Snapshots)
	if err != nil {
		return err
	}
	secrets := map[string]planeValues{}
	for _, plane := range p.Planes {
		remembered := input.Values.Get(planesPath + "." + plane.ID)
		v, err := secretsOf(found[plane.ID], remembered, plane.Role)
		switch {
		case err == nil:
			secrets[plane.ID] = v
		case plane.Frozen == "" && plane.Role != plan.RoleRetiring:
			return fmt.Errorf("read secrets of plane %s: %w", plane.ID, err)
		}
	}
	input.Values.Set(planesPath, secrets)
	return nil
}

// secretsOf are the secrets of a plane of which r exists; nil when nothing does. Where anything exists they are never
// made anew: the volumes could not be read with them. For a plane that goes none are made.
func secretsOf(r *remains, remembered gjson.Result, role plan.Role) (planeValues, error) {
	if r == nil {
		r = &remains{}
	}
	if v, err := r.readBack(remembered); err == nil || r.exists() || role == plan.RoleRetiring {
		return v, err
	}
	return newPlaneValues()
}

// readBack reads the secrets from the plane's Secret, else from the values.
func (r *remains) readBack(remembered gjson.Result) (planeValues, error) {
	err := errSecretGone
	if r.secret != nil {
		var v planeValues
		if v, err = readSecret(r.secret.Data); err == nil {
			return v, nil
		}
	}
	if v, rememberedErr := parsePlaneValues(remembered); rememberedErr == nil {
		return v, nil
	}
	return planeValues{}, err
}

func (r *remains) exists() bool {
	return r.statefulSet != nil || r.secret != nil || len(r.claims) > 0
}

// publishedPlan reads the plan back from the values.
func publishedPlan(values pkg.PatchableValuesCollector) (plan.Plan, error) {
	var p plan.Plan
	published, ok := values.GetOk(planPath)
	if !ok {
		return p, errNoPlan
	}
	if err := json.Unmarshal([]byte(published.Raw), &p); err != nil {
		return p, fmt.Errorf("read the plan: %w", err)
	}
	return p, nil
}
