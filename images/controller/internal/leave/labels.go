package leave

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
)

// storeKinds are the kinds of the objects that make the store and stay while the module is disabled. The leaver's own
// Role and RoleBinding are not among them: they are not the administrator's to delete one by one, and the chart, which
// may be putting them back at this very moment, would not see that a label is missing.
func storeKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Secret"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		appsv1.SchemeGroupVersion.WithKind("ControllerRevision"),
	}
}

// unlabelObjects takes the platform's label off everything of the store in the namespace.
func (l *Leaver) unlabelObjects(ctx context.Context) (bool, error) {
	for _, kind := range storeKinds() {
		found, err := list(ctx, l.Client, kind, client.MatchingLabels{names.HeritageLabel: names.Heritage})
		if err != nil {
			return false, err
		}
		for i := range found {
			if done, err := l.unlabel(ctx, &found[i]); err != nil || !done {
				return false, err
			}
		}
	}
	return true, nil
}

// unlabelNamespace takes the label off the namespace: from then on an administrator can delete it.
func (l *Leaver) unlabelNamespace(ctx context.Context) (bool, error) {
	namespace, err := readNamespace(ctx, l.Client)
	if err != nil || namespace == nil || namespace.Labels[names.HeritageLabel] == "" {
		return err == nil, err
	}
	return l.unlabel(ctx, namespace)
}

func (l *Leaver) unlabel(ctx context.Context, object *metav1.PartialObjectMetadata) (bool, error) {
	if !object.DeletionTimestamp.IsZero() {
		return true, nil // it goes anyway
	}
	before := object.DeepCopy()
	delete(object.Labels, names.HeritageLabel)
	return l.unlessEnabled(ctx, func(ctx context.Context) error { return l.patch(ctx, before, object) })
}

// list reads what the objects of a kind in the module's namespace say of themselves, and nothing of their content.
func list(
	ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, which client.ListOption,
) ([]metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := reader.List(ctx, found, client.InNamespace(names.Namespace), which); err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	for i := range found.Items {
		found.Items[i].SetGroupVersionKind(kind)
	}
	return found.Items, nil
}

// readNamespace is the module's namespace; nil when there is none.
func readNamespace(ctx context.Context, reader client.Reader) (*metav1.PartialObjectMetadata, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := reader.Get(ctx, client.ObjectKey{Name: names.Namespace}, namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // documented above
	}
	if err != nil {
		return nil, fmt.Errorf("read Namespace %s: %w", names.Namespace, err)
	}
	return namespace, nil
}
