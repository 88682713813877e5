// Package module writes our conditions into the status of Module/system-s3, beside those of the platform, and puts them
// back when somebody overwrites them.
package module

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

// Condition types on Module/system-s3.
const (
	StorageReady   = "StorageReady"
	PlacementReady = "PlacementReady"
	CapacityReady  = "CapacityReady"
	MigrationReady = "MigrationReady"
)

// GroupVersionKind of the platform's Module.
var GroupVersionKind = schema.GroupVersionKind{Group: "deckhouse.io", Version: "v1alpha1", Kind: "Module"} //nolint:gochecknoglobals // a constant in all but syntax

// Condition is a verdict under the name that people read it by.
type Condition struct {
	Type string
	plan.Verdict
}

// Object is an empty Module/system-s3, for watches and reads.
func Object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(GroupVersionKind)
	object.SetName(names.Module)
	return object
}

// Conditions publishes conditions on the Module.
type Conditions struct {
	Client client.Client
	Events events.EventRecorder
	Now    func() time.Time
}

// Publish makes the conditions say what is given. Conditions of others stay as they are. Without a Module nothing is
// done: there is nowhere to tell it.
func (c Conditions) Publish(ctx context.Context, conditions []Condition) error {
	object := Object()
	if err := c.Client.Get(ctx, client.ObjectKey{Name: names.Module}, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read Module %s: %w", names.Module, err)
	}
	changed := object.DeepCopy()
	present, _, err := unstructured.NestedSlice(changed.Object, "status", "conditions")
	if err != nil {
		return fmt.Errorf("read the conditions of Module %s: %w", names.Module, err)
	}
	before := reasons(present)
	merged, different := merge(present, conditions, c.Now())
	if !different {
		return nil
	}
	if err := unstructured.SetNestedSlice(changed.Object, merged, "status", "conditions"); err != nil {
		return fmt.Errorf("set the conditions of Module %s: %w", names.Module, err)
	}
	// With the resourceVersion of what was read: the list has no key to merge by, so a blind write could undo the
	// platform's own conditions.
	if err := c.Client.Status().Update(ctx, changed); err != nil {
		return fmt.Errorf("write the conditions of Module %s: %w", names.Module, err)
	}
	c.announce(object, before, conditions)
	return nil
}

// mostNote bounds the text of an event, in bytes: Kubernetes refuses longer ones.
const mostNote = 1024

// announce makes an event of each condition that has another reason than before: a person who looks later sees what
// happened in which order.
func (c Conditions) announce(object *unstructured.Unstructured, before map[string]string, conditions []Condition) {
	for _, condition := range conditions {
		if condition.Reason == "" || condition.Reason == before[condition.Type] {
			continue
		}
		kind := corev1.EventTypeNormal
		if !condition.OK && before[condition.Type] != "" {
			kind = corev1.EventTypeWarning
		}
		note := fmt.Sprintf("%s=%s: %s", condition.Type, status(condition), condition.Message)
		if len(note) > mostNote {
			note = strings.ToValidUTF8(note[:mostNote], "")
		}
		c.Events.Eventf(object, nil, kind, condition.Reason, "Observe", "%s", note)
	}
}

// reasons of the conditions by type.
func reasons(list []any) map[string]string {
	found := map[string]string{}
	for _, each := range list {
		if m, ok := each.(map[string]any); ok {
			kind, _ := m["type"].(string)
			found[kind], _ = m["reason"].(string)
		}
	}
	return found
}

// merge puts the conditions into the list; false when they are there already.
func merge(present []any, conditions []Condition, now time.Time) ([]any, bool) {
	different := false
	for _, condition := range conditions {
		if condition.Reason == "" {
			continue // nobody has an opinion yet, and the platform refuses conditions without a reason
		}
		at := position(present, condition.Type)
		if at < 0 {
			present = append(present, entry(condition, now.UTC().Format(time.RFC3339)))
			different = true
			continue
		}
		old, _ := present[at].(map[string]any)
		since, _ := old["lastTransitionTime"].(string)
		if old["status"] != status(condition) || since == "" {
			since = now.UTC().Format(time.RFC3339)
		}
		wanted := entry(condition, since)
		for field, value := range wanted {
			if old[field] != value {
				old[field] = value
				different = true
			}
		}
	}
	return present, different
}

func entry(c Condition, since string) map[string]any {
	return map[string]any{
		"type": c.Type, "status": status(c), "reason": c.Reason, "message": c.Message, "lastTransitionTime": since,
	}
}

func status(c Condition) string {
	if c.OK {
		return "True"
	}
	return "False"
}

func position(list []any, conditionType string) int {
	for i, each := range list {
		if m, ok := each.(map[string]any); ok && m["type"] == conditionType {
			return i
		}
	}
	return -1
}
