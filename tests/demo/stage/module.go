package stage

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deckhouse/system-s3/lib/names"
)

// Condition is one of Module/system-s3.
type Condition struct {
	Type, Status, Reason, Message string
}

// String is the condition in one line.
func (c Condition) String() string {
	if c.Type == "" {
		return "no such condition yet"
	}
	return fmt.Sprintf("%s=%s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
}

func deckhouseObject(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "deckhouse.io", Version: "v1alpha1", Kind: kind})
	object.SetName(names.Module)
	return object
}

// Configure writes ModuleConfig system-s3 as an administrator would. Nil settings are none.
func (s *Stage) Configure(ctx context.Context, enabled bool, settings map[string]any) error {
	return s.configure(ctx, func(config *unstructured.Unstructured) {
		spec := map[string]any{"enabled": enabled}
		if settings != nil {
			spec["version"], spec["settings"] = int64(1), settings
		}
		config.Object["spec"] = spec
	})
}

// Disable switches the module off and confirms it.
func (s *Stage) Disable(ctx context.Context) error {
	return s.configure(ctx, func(config *unstructured.Unstructured) {
		config.SetAnnotations(map[string]string{"modules.deckhouse.io/allow-disabling": "true"})
		config.Object["spec"] = map[string]any{"enabled": false}
	})
}

func (s *Stage) configure(ctx context.Context, change func(*unstructured.Unstructured)) error {
	config := deckhouseObject("ModuleConfig")
	_, err := controllerutil.CreateOrUpdate(ctx, s.Admin, config, func() error {
		change(config)
		return nil
	})
	if err != nil {
		return fmt.Errorf("write ModuleConfig %s: %w", names.Module, err)
	}
	return nil
}

// Conditions of Module/system-s3, as they stand.
func (s *Stage) Conditions(ctx context.Context) ([]Condition, error) {
	module := deckhouseObject("Module")
	if err := s.Admin.Get(ctx, client.ObjectKeyFromObject(module), module); err != nil {
		return nil, fmt.Errorf("read Module %s: %w", names.Module, err)
	}
	list, _, err := unstructured.NestedSlice(module.Object, "status", "conditions")
	if err != nil {
		return nil, fmt.Errorf("read the conditions of Module %s: %w", names.Module, err)
	}
	conditions := make([]Condition, 0, len(list))
	for _, item := range list {
		fields, _ := item.(map[string]any)
		text := func(key string) string { value, _ := fields[key].(string); return value }
		conditions = append(conditions, Condition{Type: text("type"), Status: text("status"), Reason: text("reason"), Message: text("message")})
	}
	return conditions, nil
}

// Condition of Module/system-s3; empty when there is none of that type.
func (s *Stage) Condition(ctx context.Context, kind string) (Condition, error) {
	conditions, err := s.Conditions(ctx)
	for _, c := range conditions {
		if c.Type == kind {
			return c, err
		}
	}
	return Condition{}, err
}

// AwaitCondition waits until the module's condition has one of the reasons.
func (s *Stage) AwaitCondition(ctx context.Context, limit time.Duration, kind string, reasons ...string) error {
	return s.Await(ctx, Wish{
		What: fmt.Sprintf("condition %s of Module %s with reason %v", kind, names.Module, reasons), Limit: limit,
		Look: func(ctx context.Context) (bool, string, error) {
			c, err := s.Condition(ctx, kind)
			for _, reason := range reasons {
				if err == nil && c.Reason == reason {
					return true, c.String(), nil
				}
			}
			return false, c.String(), err
		},
	})
}
