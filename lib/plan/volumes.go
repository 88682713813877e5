package plan

import (
	"fmt"
	"math"
	"strconv"
)

const (
	mebi = int64(1) << 20
	gibi = int64(1) << 30

	metadataBytes = 4 * gibi  // beside the objects
	smallestBytes = 10 * gibi // of any volume
	stepBytes     = 5 * gibi  // sizes are its multiples

	// mostBytes keeps the arithmetic below far from overflow; no volume is that large.
	mostBytes = math.MaxInt64 / 4
)

// volumeChoice is how large each replica's volume is, and why.
type volumeChoice struct {
	bytes   int64
	why     string
	verdict Verdict
}

// wantedVolume is the size of D1, and never less than what exists: Kubernetes cannot shrink a claim.
func wantedVolume(c Cluster, o ObservedPlane, class string) volumeChoice {
	v := volumeChoice{bytes: volumeFor(quotas(c.Buckets))}
	// The sum itself is not told: it changes with every SystemBucket, and with it everything that prints the plan.
	v.why = quantity(v.bytes) + ": the sizes of all SystemBuckets with 10 % and 4Gi on top, at least 10Gi, in steps of 5Gi."
	if o.VolumeBytes > v.bytes {
		v.bytes = o.VolumeBytes
		v.why = quantity(v.bytes) + ", as it is: the SystemBuckets need less, and a volume never shrinks."
	}
	v.verdict = capacity(c, o, class, v.bytes)
	return v
}

// capacity tells whether the claims that exist are as large as wanted, and if not, whether they can become so.
func capacity(c Cluster, o ObservedPlane, name string, want int64) Verdict {
	if o.SmallestClaimBytes == 0 || o.SmallestClaimBytes >= want {
		return accept(ReasonEnough, fmt.Sprintf("Each replica has a volume of %s.", quantity(want)))
	}
	if class, ok := c.class(name); ok && class.Expandable {
		return accept(ReasonGrowing, fmt.Sprintf("Volumes grow from %s to %s.", quantity(o.SmallestClaimBytes), quantity(want)))
	}
	return refuse(ReasonExpansionNotAllowed, fmt.Sprintf(
		"Volumes of %s should be %s, but StorageClass %s does not allow them to grow while in use: allow it with allowVolumeExpansion: true, or lower the sizes of SystemBuckets.",
		quantity(o.SmallestClaimBytes), quantity(want), name))
}

// volumeFor is D1 for the sum of all quotas.
func volumeFor(sum int64) int64 {
	need := max(sum+(sum+9)/10+metadataBytes, smallestBytes)
	return (need + stepBytes - 1) / stepBytes * stepBytes
}

// quotas is the sum of the sizes of all buckets.
func quotas(buckets []Bucket) int64 {
	var sum int64
	for _, b := range buckets {
		sum = min(sum+min(max(b.Bytes, 0), mostBytes), mostBytes)
	}
	return sum
}

// quantity prints bytes as a Kubernetes quantity, exactly.
func quantity(bytes int64) string {
	switch {
	case bytes%gibi == 0:
		return strconv.FormatInt(bytes/gibi, 10) + "Gi"
	case bytes%mebi == 0:
		return strconv.FormatInt(bytes/mebi, 10) + "Mi"
	default:
		return strconv.FormatInt(bytes, 10)
	}
}
