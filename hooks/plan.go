package main

import (
	"context"
	"fmt"

	"github.com/deckhouse/module-sdk/pkg"
	"github.com/deckhouse/module-sdk/pkg/registry"
	"github.com/tidwall/gjson"

	"github.com/deckhouse/system-s3/lib/plan"
)

// planPath is where the plan is published for the chart and for the hooks that carry it out.
const planPath = "systemS3.internal.plan"

var _ = registry.RegisterFunc(planConfig(), guarded(decide))

func planConfig() *pkg.HookConfig {
	return &pkg.HookConfig{
		OnBeforeHelm: &pkg.OrderedConfig{Order: orderPlan},
		Kubernetes: []pkg.KubernetesConfig{
			nodesBinding(), classesBinding(), bucketsBinding(), statefulSetsBinding(), secretsBinding(), claimsBinding(), stateBinding(),
		},
	}
}

// decide publishes the plan for what the snapshots and the settings say.
func decide(_ context.Context, input *pkg.HookInput) error {
	cluster, err := observe(input)
	if err != nil {
		return fmt.Errorf("observe the cluster: %w", err)
	}
	input.Values.Set(planPath, plan.Decide(cluster, settings(input.Values)))
	return nil
}

// settings reads what people wrote down; a null counts as not written.
func settings(values pkg.PatchableValuesCollector) plan.Settings {
	return plan.Settings{
		HighAvailability:            flag(values.Get("systemS3.highAvailability")),
		GlobalHighAvailability:      flag(values.Get("global.highAvailability")),
		ControlPlaneHighlyAvailable: values.Get("global.discovery.clusterControlPlaneIsHighlyAvailable").Bool(),
		StorageClass:                values.Get("systemS3.storageClass").String(),
		GlobalStorageClass:          values.Get("global.modules.storageClass").String(),
	}
}

func flag(value gjson.Result) *bool {
	if !value.IsBool() {
		return nil
	}
	on := value.Bool()
	return &on
}
