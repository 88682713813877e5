package stage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
)

// Namespace makes a namespace of the platform, as Deckhouse makes those of its modules.
func (s *Stage) Namespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := controllerutil.CreateOrUpdate(ctx, s.Deckhouse, namespace, func() error {
		if namespace.Labels == nil {
			namespace.Labels = map[string]string{}
		}
		namespace.Labels[names.HeritageLabel] = names.Heritage
		return nil
	})
	if err != nil {
		return fmt.Errorf("make namespace %s: %w", name, err)
	}
	return nil
}

// Bucket makes a SystemBucket, or gives an existing one the size.
func (s *Stage) Bucket(ctx context.Context, key client.ObjectKey, size string) error {
	quantity, err := resource.ParseQuantity(size)
	if err != nil {
		return fmt.Errorf("parse size %q: %w", size, err)
	}
	bucket := &v1alpha1.SystemBucket{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the controller writes to it, too
		_, err := controllerutil.CreateOrUpdate(ctx, s.Admin, bucket, func() error {
			bucket.Spec.Size = quantity
			return nil
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("make SystemBucket %s: %w", key, err)
	}
	return nil
}

// ReadBucket reads a SystemBucket and its condition Ready.
func (s *Stage) ReadBucket(ctx context.Context, key client.ObjectKey) (*v1alpha1.SystemBucket, metav1.Condition, error) {
	bucket := &v1alpha1.SystemBucket{}
	if err := s.Admin.Get(ctx, key, bucket); err != nil {
		return nil, metav1.Condition{}, fmt.Errorf("read SystemBucket %s: %w", key, err)
	}
	if ready := meta.FindStatusCondition(bucket.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return bucket, *ready, nil
	}
	return bucket, metav1.Condition{}, nil
}

// AwaitBucket waits until the SystemBucket is ready and tells what the module says meanwhile.
func (s *Stage) AwaitBucket(ctx context.Context, key client.ObjectKey, limit time.Duration) error {
	return s.Await(ctx, Wish{
		What: "SystemBucket " + key.String() + " to be ready", Limit: limit,
		Look: func(ctx context.Context) (bool, string, error) {
			bucket, ready, err := s.ReadBucket(ctx, key)
			if err != nil {
				return false, "", err
			}
			if ready.Status == metav1.ConditionTrue && bucket.Status.BucketName != "" {
				return true, "the SystemBucket is ready, its name in S3 is " + bucket.Status.BucketName, nil
			}
			if ready.Message == "" {
				return false, "the module has not answered yet", nil
			}
			return false, ready.Message, nil
		},
	})
}
