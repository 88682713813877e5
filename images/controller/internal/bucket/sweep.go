package bucket

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/garage"
)

const (
	// sweepInterval is how old a SystemBucket's use may get.
	sweepInterval = time.Minute
	// orphanAge is how long a bucket without a name may wait for somebody to know it.
	orphanAge = time.Hour
)

// Sweep compares all buckets with all SystemBuckets once a minute, by a few questions instead of one for each, and wakes
// the reconciler for those that differ. It also wakes everybody when the store changes.
type Sweep struct {
	Client    client.Reader
	Board     *backend.Board
	Inventory *Inventory
	// Wake gets a SystemBucket that has to be looked at.
	Wake chan<- event.GenericEvent
	Now  func() time.Time
}

// Start sweeps until the context ends. It runs on the leader only.
func (s *Sweep) Start(ctx context.Context) error {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-s.Board.Wake():
			err = s.wakeAll(ctx)
		case <-ticker.C:
			err = s.pass(ctx)
		}
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "sweep")
		}
	}
}

func (s *Sweep) wakeAll(ctx context.Context) error {
	var all v1alpha1.SystemBucketList
	if err := s.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil { // thousands, and only read
		return fmt.Errorf("list SystemBuckets: %w", err)
	}
	for i := range all.Items {
		s.wake(ctx, &all.Items[i])
	}
	return nil
}

func (s *Sweep) wake(ctx context.Context, sb *v1alpha1.SystemBucket) {
	select {
	case s.Wake <- event.GenericEvent{Object: &v1alpha1.SystemBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: sb.Namespace, Name: sb.Name},
	}}:
	case <-ctx.Done():
	}
}

func (s *Sweep) pass(ctx context.Context) error {
	store, known := s.Board.Read()
	if !known || store.Connection == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	// SystemBuckets first: a bucket that is made in between is then merely unknown to the comparison.
	var all v1alpha1.SystemBucketList
	if err := s.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil { // thousands, and only read
		return fmt.Errorf("list SystemBuckets: %w", err)
	}
	buckets, err := s.Inventory.take(ctx, store.Connection)
	if err != nil {
		return err
	}
	recorded := make(map[string]bool, len(all.Items))
	for i := range all.Items {
		sb := &all.Items[i]
		recorded[sb.Status.BucketID] = true
		bucket, exists := buckets[sb.Status.BucketID]
		if stale(sb, bucket, exists, store.Connection) {
			s.wake(ctx, sb)
		}
	}
	return s.removeOrphans(ctx, store.Connection.Admin, orphans(buckets, recorded, s.Now()))
}

// stale tells whether the status does not say what Garage says, or the bucket is not what it should be.
func stale(sb *v1alpha1.SystemBucket, bucket garage.Bucket, exists bool, c *backend.Connection) bool {
	if !exists || !sb.DeletionTimestamp.IsZero() {
		return true
	}
	w := wishOf(sb, c)
	var err error
	if w.Quotas, err = quotasOf(sb.Spec); err != nil {
		return false // told already, and nothing in Garage can mend it
	}
	return !fits(bucket, w) || sb.Status.Used == nil || sb.Status.Used.Cmp(*use(bucket.Bytes)) != 0 ||
		sb.Status.Objects == nil || *sb.Status.Objects != bucket.Objects
}

// orphans are buckets that a crash left between their creation and the recording of their id: without name, grant and
// objects, known to no SystemBucket, and old enough for any pass to have ended.
func orphans(buckets map[string]garage.Bucket, recorded map[string]bool, now time.Time) []string {
	var found []string
	for id, bucket := range buckets {
		created, err := time.Parse(time.RFC3339Nano, bucket.Created)
		if err != nil || now.Sub(created) < orphanAge {
			continue
		}
		unused := len(bucket.GlobalAliases) == 0 && len(bucket.Keys) == 0 && bucket.Objects == 0
		if unused && !recorded[id] {
			found = append(found, id)
		}
	}
	return found
}

func (s *Sweep) removeOrphans(ctx context.Context, admin *garage.Client, ids []string) error {
	for _, id := range ids {
		log.FromContext(ctx).Info("removing a bucket that was made and never used", "id", id)
		if err := admin.DeleteBucket(ctx, id); err != nil && !garage.IsAbsent(err) {
			return fmt.Errorf("remove bucket %s: %w", id, err)
		}
	}
	return nil
}
