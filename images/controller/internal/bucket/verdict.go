// Package bucket makes SystemBuckets real: the bucket in Garage with its quotas and the grant to the internal key, the
// ConfigMap with the connection parameters beside the SystemBucket, and the status. Only Garage's own 404 is absence: a
// bucket that was recorded and is gone is told, and made again only in a store that provably is another one.
package bucket

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/plan"
)

// verdict is a condition without its history.
type verdict struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

func no(reason, message string) verdict {
	return verdict{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// waiting is why a bucket cannot be served while the store has no connection.
func waiting(store backend.Store) verdict {
	if store.Ready.Reason == plan.ReasonNoStorageClass {
		return no(v1alpha1.ReasonNoStorageClass, store.Ready.Message)
	}
	if store.Ready.OK || store.Ready.Reason == plan.ReasonWaitingForFirstBucket {
		return no(v1alpha1.ReasonWaitingForStorage, "The store is being made.")
	}
	return no(v1alpha1.ReasonWaitingForStorage, fmt.Sprintf("The store is not ready (%s): %s", store.Ready.Reason, store.Ready.Message))
}

func backendError(err error) verdict {
	return no(v1alpha1.ReasonBackendError, fmt.Sprintf("Garage: %v. It is tried again.", err))
}

// vanished is the verdict on a bucket that was recorded and that Garage no longer has.
func vanished(id string) verdict {
	return no(v1alpha1.ReasonBackendError, fmt.Sprintf(
		"The bucket %s of this SystemBucket is gone from Garage. It is not made again by itself, since that would hide the loss of its objects. Restore the volumes of the store, or delete the SystemBucket and create it again to start with an empty bucket.",
		id))
}

// dataLost tells that the store that had the bucket is gone. How much was in it is not told: the last count may be a
// minute older than the last object.
func dataLost(before v1alpha1.SystemBucketStatus) verdict {
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonStoreMadeAnew, fmt.Sprintf(
		"The store %s, which had this bucket, was deleted with all its data. A new store was made, and in it this bucket, empty. What used the bucket must be filled again.",
		before.StoreID)}
}

// deleting is the verdict on a bucket whose objects are being deleted.
func deleting(b garage.Bucket) verdict {
	if b.Objects == 0 {
		return no(v1alpha1.ReasonDeleting, "The bucket is being deleted.")
	}
	return no(v1alpha1.ReasonDeleting, fmt.Sprintf("The bucket is being deleted: %d objects are left.", b.Objects))
}

const (
	nearPercent    = 80 // of a quota
	reachedPercent = 99 // of the quota by space: less is left than most objects need
	hundred        = 100
)

// quota is the verdict of QuotaAvailable. Its text does not follow every object, so that it does not flap.
func quota(b garage.Bucket) verdict {
	switch space, objects := share(b.Bytes, b.Quotas.MaxSize), share(b.Objects, b.Quotas.MaxObjects); {
	case space >= reachedPercent:
		return no(v1alpha1.ReasonQuotaReached, "The quota by space is used up and writes are refused. Raise spec.size or delete objects.")
	case objects >= hundred:
		return no(v1alpha1.ReasonQuotaReached, "The quota by number of objects is used up and new objects are refused. Raise spec.maxObjects or delete objects.")
	case space >= nearPercent:
		return verdict{metav1.ConditionTrue, v1alpha1.ReasonNearQuota, fmt.Sprintf("More than %d %% of the quota by space is used.", nearPercent)}
	case objects >= nearPercent:
		return verdict{metav1.ConditionTrue, v1alpha1.ReasonNearQuota, fmt.Sprintf("More than %d %% of the quota by number of objects is used.", nearPercent)}
	default:
		return verdict{metav1.ConditionTrue, v1alpha1.ReasonWithinQuota, "Both quotas leave room."}
	}
}

// share of the limit in percent; 0 without a limit.
func share(used int64, limit *int64) int64 {
	switch {
	case limit == nil:
		return 0
	case *limit <= 0:
		return hundred
	}
	return int64(float64(used) / float64(*limit) * hundred)
}

// use is the space taken, rounded up so that people can read it and that not every object changes the status: exact up
// to 10 KiB, then to whole KiB, MiB or GiB.
func use(bytes int64) *resource.Quantity {
	const step, readable = 1024, 10
	unit := int64(1)
	for bytes > readable*unit*step && unit < 1<<30 {
		unit *= step
	}
	return resource.NewQuantity((bytes+unit-1)/unit*unit, resource.BinarySI)
}

// limits are quotas as the status tells them.
func limits(q garage.Quotas) *v1alpha1.SystemBucketQuota {
	told := &v1alpha1.SystemBucketQuota{MaxObjects: q.MaxObjects}
	if q.MaxSize != nil {
		told.Size = resource.NewQuantity(*q.MaxSize, resource.BinarySI)
	}
	return told
}

// quotasOf is the quotas that the spec asks for.
func quotasOf(spec v1alpha1.SystemBucketSpec) (garage.Quotas, error) {
	size := spec.Size.Value()
	if size < 1 {
		return garage.Quotas{}, fmt.Errorf("spec.size is %s, it must be positive", spec.Size.String())
	}
	if spec.MaxObjects != nil && *spec.MaxObjects < 1 {
		return garage.Quotas{}, fmt.Errorf("spec.maxObjects is %d, it must be positive", *spec.MaxObjects)
	}
	return garage.Quotas{MaxSize: &size, MaxObjects: spec.MaxObjects}, nil
}
