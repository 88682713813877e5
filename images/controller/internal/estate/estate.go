// Package estate is about the buckets whose SystemBuckets were deleted while nobody held them back. Leaving takes our
// finalizer off all SystemBuckets (SPEC H3), so one may be deleted while the module is away, and its data with it has to
// go later (SPEC A4). Before the finalizers come off it is written down in the cluster which bucket belongs to whom; after
// the return that list, and nothing else, says which buckets may be deleted once their SystemBuckets are proven gone.
//
// The list lies in the same etcd as the SystemBuckets. A cluster that is restored from a backup gets both from the same
// moment: a SystemBucket that is missing only because it is younger than the backup is missing in the list, too.
package estate

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Grace is how long a SystemBucket must have been seen to be gone, at least twice, before its bucket is deleted.
const Grace = time.Minute

// Entry tells whose a bucket is.
type Entry struct {
	UID       types.UID `json:"-"` // of the SystemBucket
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Bucket    string    `json:"bucket"` // id in Garage
	Store     string    `json:"store"`  // identity of the store that has it
	// Gone is when the SystemBucket was first seen to be gone.
	Gone *time.Time `json:"gone,omitempty"`
}

// World is what entries are judged by.
type World struct {
	// Held tells of every SystemBucket in the cluster whether our finalizer is on it. It must be complete: who is not in
	// it counts as gone.
	Held map[types.UID]bool
	// Recorded are the ids of the buckets that SystemBuckets have in their status.
	Recorded map[string]bool
	// Store is the identity of the store that is there now.
	Store string
	Now   time.Time
}

// Verdict is what becomes of an entry.
type Verdict int

// The verdicts.
const (
	Keep   Verdict = iota // it stays as it is
	Revive                // the SystemBucket is there after all, but not held yet
	Mark                  // it was not seen to be gone before
	Drop                  // the entry has nothing to say any more; the bucket is left alone
	Delete                // the SystemBucket is gone for good, and its bucket goes, too
)

// Judge decides on an entry and tells why.
func Judge(e Entry, w World) (Verdict, string) {
	if held, exists := w.Held[e.UID]; exists {
		return judgeLiving(e, held)
	}
	switch {
	case w.Recorded[e.Bucket]:
		return Drop, "another SystemBucket has taken the bucket over"
	case e.Store == "" || e.Store != w.Store:
		return Drop, "the bucket is not known to be in this store"
	case e.Gone == nil:
		return Mark, "its SystemBucket was not seen to be gone before"
	case w.Now.Sub(*e.Gone) < Grace:
		return Keep, "its SystemBucket has not been gone for long"
	default:
		return Delete, "its SystemBucket was deleted while the module was away"
	}
}

func judgeLiving(e Entry, held bool) (Verdict, string) {
	switch {
	case held:
		return Drop, "its SystemBucket is held by our finalizer again"
	case e.Gone != nil:
		return Revive, "its SystemBucket is there"
	default:
		return Keep, "its SystemBucket is there and not held yet"
	}
}
