package metrics

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/metrics"
)

var (
	bucketInfo         = describe(metrics.BucketInfo)
	bucketCondition    = describe(metrics.BucketCondition)
	bucketUsed         = describe(metrics.BucketUsed)
	bucketQuota        = describe(metrics.BucketQuota)
	bucketObjects      = describe(metrics.BucketObjects)
	bucketQuotaObjects = describe(metrics.BucketQuotaObjects)
)

func (s Store) buckets(ctx context.Context, to chan<- prometheus.Metric) error {
	var all v1alpha1.SystemBucketList
	if err := s.Reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil { // thousands, and only read
		return fmt.Errorf("list SystemBuckets: %w", err)
	}
	for i := range all.Items {
		tellBucket(&all.Items[i], to)
	}
	return nil
}

// tellBucket tells what the status says: it is what people see, too.
func tellBucket(sb *v1alpha1.SystemBucket, to chan<- prometheus.Metric) {
	told := sb.Status
	if told.BucketName != "" {
		to <- gauge(bucketInfo, 1, sb.Namespace, sb.Name, told.BucketName)
	}
	for _, c := range told.Conditions {
		to <- gauge(bucketCondition, 1, sb.Namespace, sb.Name, c.Type, string(c.Status), c.Reason)
	}
	if told.Used != nil {
		to <- gauge(bucketUsed, float64(told.Used.Value()), sb.Namespace, sb.Name)
	}
	if told.Objects != nil {
		to <- gauge(bucketObjects, float64(*told.Objects), sb.Namespace, sb.Name)
	}
	if told.Quota == nil {
		return
	}
	if told.Quota.Size != nil {
		to <- gauge(bucketQuota, float64(told.Quota.Size.Value()), sb.Namespace, sb.Name)
	}
	if told.Quota.MaxObjects != nil {
		to <- gauge(bucketQuotaObjects, float64(*told.Quota.MaxObjects), sb.Namespace, sb.Name)
	}
}
