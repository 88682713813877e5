package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/sts"
)

// Buckets looks SystemBuckets up.
type Buckets struct {
	// Reader reads them, from the cache of a manager or from the apiserver.
	Reader client.Reader
}

// Bucket is the S3 name of a SystemBucket. It follows from the SystemBucket's UID and needs no status. A SystemBucket
// that is being deleted is gone for consumers. Errors: sts.ErrNoBucket, or that nothing is known.
func (b Buckets) Bucket(ctx context.Context, namespace, name string) (string, error) {
	bucket := &v1alpha1.SystemBucket{}
	err := b.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, bucket)
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("%w: %s/%s", sts.ErrNoBucket, namespace, name)
	}
	if err != nil {
		return "", fmt.Errorf("read SystemBucket: %w", err)
	}
	if !bucket.DeletionTimestamp.IsZero() {
		return "", fmt.Errorf("%w: %s/%s is being deleted", sts.ErrNoBucket, namespace, name)
	}
	return names.Bucket(namespace, name, string(bucket.UID)), nil
}
