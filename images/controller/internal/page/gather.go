// Package page serves the status page: it gathers the facts from the caches of the controller, lets internal/status
// decide what they mean, and prints that as HTML for those whom RBAC lets see it. It changes nothing.
package page

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/images/controller/internal/module"
	"github.com/deckhouse/system-s3/images/controller/internal/status"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
)

// gatherTimeout bounds one look at everything. A cache that is not filled yet must not hold up the page.
const gatherTimeout = 5 * time.Second

// Observer gathers the facts.
type Observer struct {
	// Reader is the manager's cache. What nobody else reads, such as RBAC, it begins to watch with the first visitor.
	Reader client.Reader
	// Live asks the apiserver. It is for the two ConfigMaps: with them a cache would take in those of all buckets.
	Live    client.Reader
	Now     func() time.Time
	Version string
}

// Observe gathers what there is, side by side: what cannot be read is told as such and keeps nothing else back.
func (o *Observer) Observe(ctx context.Context) status.World {
	ctx, cancel := context.WithTimeout(ctx, gatherTimeout)
	defer cancel()
	w := status.World{Now: o.Now(), Version: o.Version}
	sources := []struct {
		source status.Source
		read   func(context.Context, *status.World) error // writes its own fields only
	}{
		{status.SourcePlan, o.plan},
		{status.SourceState, o.state},
		{status.SourceModule, o.conditions},
		{status.SourcePods, o.pods},
		{status.SourceBuckets, o.buckets},
		{status.SourceAccess, o.access},
		{status.SourceEvents, o.events},
	}
	failures := make([]error, len(sources))
	var group sync.WaitGroup
	for i, each := range sources {
		group.Go(func() { failures[i] = each.read(ctx, &w) })
	}
	group.Wait()
	for i, each := range sources {
		if failures[i] != nil {
			w.Unread = append(w.Unread, status.Unread{Source: each.source, Why: failures[i].Error()})
		}
	}
	return w
}

func (o *Observer) plan(ctx context.Context, w *status.World) error {
	var err error
	w.Planned, err = o.decode(ctx, names.PlanConfigMap, names.PlanKey, &w.Plan)
	return err
}

func (o *Observer) state(ctx context.Context, w *status.World) error {
	_, err := o.decode(ctx, names.StateConfigMap, names.StateKey, &w.State)
	return err
}

// decode reads a key of one of our ConfigMaps; false when there is no such ConfigMap.
func (o *Observer) decode(ctx context.Context, name, key string, into any) (bool, error) {
	var object corev1.ConfigMap
	err := o.Live.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: name}, &object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	if err := json.Unmarshal([]byte(object.Data[key]), into); err != nil {
		return false, fmt.Errorf("decode key %s of ConfigMap %s: %w", key, name, err)
	}
	return object.DeletionTimestamp == nil, nil
}

func (o *Observer) conditions(ctx context.Context, w *status.World) error {
	object := module.Object()
	if err := o.Reader.Get(ctx, client.ObjectKey{Name: names.Module}, object); err != nil {
		return fmt.Errorf("read Module %s: %w", names.Module, err)
	}
	list, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return fmt.Errorf("read the conditions of Module %s: %w", names.Module, err)
	}
	for _, each := range list {
		fields, _ := each.(map[string]any)
		text := func(name string) string { value, _ := fields[name].(string); return value }
		since, _ := time.Parse(time.RFC3339, text("lastTransitionTime")) // else it stays unknown
		w.Conditions = append(w.Conditions, status.Condition{
			Type: text("type"), Status: text("status"), Reason: text("reason"), Message: text("message"), Since: since,
		})
	}
	return nil
}

func (o *Observer) pods(ctx context.Context, w *status.World) error {
	var sets appsv1.StatefulSetList
	garage := []client.ListOption{client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.GarageApp}}
	if err := o.Reader.List(ctx, &sets, garage...); err != nil {
		return fmt.Errorf("list StatefulSets: %w", err)
	}
	present := map[string]string{} // template's revision by plane; none while it is not certain
	for _, set := range sets.Items {
		if set.Status.ObservedGeneration == set.Generation {
			present[set.Labels[names.PlaneLabel]] = set.Status.UpdateRevision
		}
	}
	var pods corev1.PodList
	if err := o.Reader.List(ctx, &pods, garage...); err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	for _, pod := range pods.Items {
		revision, made := present[pod.Labels[names.PlaneLabel]], pod.Labels[appsv1.ControllerRevisionHashLabelKey]
		w.Pods = append(w.Pods, status.Pod{
			Name: pod.Name, Current: revision == "" || made == "" || revision == made, Created: pod.CreationTimestamp.Time,
		})
	}
	return nil
}

func (o *Observer) buckets(ctx context.Context, w *status.World) error {
	var list v1alpha1.SystemBucketList
	// Thousands of them are only read here, so they need not be copied out of the cache.
	if err := o.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list SystemBuckets: %w", err)
	}
	w.Buckets = make([]status.Bucket, 0, len(list.Items))
	for i := range list.Items {
		w.Buckets = append(w.Buckets, bucket(&list.Items[i]))
	}
	return nil
}

func bucket(sb *v1alpha1.SystemBucket) status.Bucket {
	b := status.Bucket{
		Namespace: sb.Namespace, Name: sb.Name, S3Name: sb.Status.BucketName, Size: sb.Spec.Size.Value(),
		Deleting: !sb.DeletionTimestamp.IsZero(),
	}
	if sb.Spec.MaxObjects != nil {
		b.MaxObjects = *sb.Spec.MaxObjects
	}
	if sb.Status.Used != nil && sb.Status.Objects != nil {
		b.Used, b.Objects, b.Counted = sb.Status.Used.Value(), *sb.Status.Objects, true
	}
	for _, c := range sb.Status.Conditions {
		told := status.Condition{
			Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time,
		}
		switch c.Type {
		case v1alpha1.ConditionReady:
			b.Ready = told
		case v1alpha1.ConditionQuotaAvailable:
			b.Quota = told
		case v1alpha1.ConditionDataLost:
			b.DataLost = told
		}
	}
	return b
}

func (o *Observer) events(ctx context.Context, w *status.World) error {
	var list corev1.EventList
	if err := o.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	for i := range list.Items {
		w.Events = append(w.Events, event(&list.Items[i]))
	}
	return nil
}

func event(e *corev1.Event) status.Event {
	told := status.Event{
		At: e.EventTime.Time, Warning: e.Type == corev1.EventTypeWarning, Reason: e.Reason, Message: e.Message, Count: 1,
	}
	if e.LastTimestamp.After(told.At) {
		told.At = e.LastTimestamp.Time
	}
	if e.Series != nil {
		told.At, told.Count = e.Series.LastObservedTime.Time, int(e.Series.Count)
	}
	name := e.InvolvedObject.Name
	if e.InvolvedObject.Namespace != "" {
		name = e.InvolvedObject.Namespace + "/" + name
	}
	told.Object = e.InvolvedObject.Kind + " " + name
	return told
}
