package platform

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
)

// Phases of a Module that the stand-in uses.
const (
	phaseAvailable   = "Available"
	phaseReconciling = "Reconciling"
	phaseReady       = "Ready"
	phaseError       = "Error"
)

// condition is what the platform says about one side of the module.
type condition struct {
	kind            string
	holds           bool
	reason, message string
}

// verdict is what the Module should say.
type verdict struct {
	phase      string
	conditions []condition
}

// judge decides what the Module says. Wanted is the user's will, state what
// addon-operator reports.
func judge(wanted bool, state operatorState) verdict {
	enabled := wanted && state.Enabled
	ready := enabled && state.Released && state.Failure == ""

	out := verdict{phase: phaseAvailable, conditions: []condition{
		{kind: "EnabledByModuleConfig", holds: wanted, reason: yes(wanted, "Enabled", "Disabled")},
		{kind: "EnabledByModuleManager", holds: enabled, reason: yes(enabled, "Enabled", "Disabled")},
		{kind: "LastReleaseDeployed", holds: true, reason: "Deployed"},
		{kind: "IsReady", holds: ready, reason: yes(ready, "Ready", "NotReady")},
	}}

	switch {
	case !wanted:
		out.conditions[1].message = "turned off by module config"
	case state.Failure != "":
		out.phase = phaseError
		out.conditions[3].reason, out.conditions[3].message = "Failed", state.Failure
	case ready:
		out.phase = phaseReady
	default:
		out.phase = phaseReconciling
	}

	return out
}

func yes(holds bool, then, otherwise string) string {
	if holds {
		return then
	}

	return otherwise
}

// reportModule makes the Module exist and sets the conditions that belong to the
// platform. Those of the module itself stay as they are.
func (c *controller) reportModule(ctx context.Context, config *ModuleConfig) error {
	if err := c.ensureModule(ctx); err != nil {
		return err
	}

	state, err := c.operator.state(ctx, c.definition.Name)
	if err != nil {
		return nil //nolint:nilerr // While addon-operator is down nobody can tell, so the last word stands.
	}

	state.Released = c.released(ctx)

	says := judge(config.enabled(c.definition.EnabledByBundle()), state)
	modules := c.objects.Resource(moduleResource)

	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		module, err := modules.Get(ctx, c.definition.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read Module: %w", err)
		}

		before := module.DeepCopy()
		if err := says.write(module); err != nil {
			return err
		}

		if equality.Semantic.DeepEqual(before.Object, module.Object) {
			return nil
		}

		_, err = modules.UpdateStatus(ctx, module, metav1.UpdateOptions{})

		return err
	})

	return wrap("report Module", err)
}

// write puts the verdict into the object's status. Conditions that say the same as
// before keep the time of their last transition.
func (v verdict) write(module *unstructured.Unstructured) error {
	present, _, err := unstructured.NestedSlice(module.Object, "status", "conditions")
	if err != nil {
		return fmt.Errorf("read conditions of Module: %w", err)
	}

	for _, wanted := range v.conditions {
		present = setCondition(present, wanted)
	}

	if err := unstructured.SetNestedSlice(module.Object, present, "status", "conditions"); err != nil {
		return fmt.Errorf("write conditions of Module: %w", err)
	}

	return wrap("write phase of Module", unstructured.SetNestedField(module.Object, v.phase, "status", "phase"))
}

func setCondition(present []any, wanted condition) []any {
	status := yes(wanted.holds, "True", "False")
	next := map[string]any{
		"type": wanted.kind, "status": status, "reason": wanted.reason, "message": wanted.message,
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}

	at := slices.IndexFunc(present, func(item any) bool {
		fields, _ := item.(map[string]any)
		return fields["type"] == wanted.kind
	})
	if at < 0 {
		return append(present, next)
	}

	old, _ := present[at].(map[string]any)
	if old["status"] == status && old["lastTransitionTime"] != nil {
		next["lastTransitionTime"] = old["lastTransitionTime"]
	}

	present[at] = next

	return present
}

// released tells whether the module's Helm release is there and deployed.
func (c *controller) released(ctx context.Context) bool {
	releases, err := c.client.CoreV1().Secrets(systemNamespace).List(ctx, metav1.ListOptions{
		LabelSelector: "owner=helm,status=deployed,name=" + c.definition.Name,
	})

	return err == nil && len(releases.Items) > 0
}

// ensureModule creates the Module with what module.yaml says, or brings it up to date.
func (c *controller) ensureModule(ctx context.Context) error {
	modules := c.objects.Resource(moduleResource)
	wanted := moduleObject(c.definition)

	module, err := modules.Get(ctx, c.definition.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = modules.Create(ctx, wanted, metav1.CreateOptions{})

		return wrap("create Module", err)
	}

	if err != nil {
		return fmt.Errorf("read Module: %w", err)
	}

	if equality.Semantic.DeepEqual(module.Object["properties"], wanted.Object["properties"]) {
		return nil
	}

	module.Object["properties"] = wanted.Object["properties"]
	_, err = modules.Update(ctx, module, metav1.UpdateOptions{})

	return wrap("update Module", err)
}

func moduleObject(def Definition) *unstructured.Unstructured {
	properties := map[string]any{
		"source": "sandbox", "version": "v0.0.0", "stage": def.Stage, "namespace": def.Namespace,
		"disableOptions": map[string]any{
			"confirmation": def.Disable.Confirmation, "message": def.Disable.Text(),
		},
	}
	if def.Weight > 0 {
		properties["weight"] = int64(def.Weight)
	}

	annotations := map[string]any{}
	for language, text := range def.Descriptions {
		annotations[language+".meta.deckhouse.io/description"] = text
	}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": moduleResource.GroupVersion().String(),
		"kind":       "Module",
		"metadata": map[string]any{
			"name": def.Name, "annotations": annotations,
			"labels": map[string]any{"module.deckhouse.io/sandbox": strconv.FormatBool(true)},
		},
		"properties": properties,
	}}
}
