package plan

import (
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

// wantedVolume is what the buckets need (D1) or what a full volume needs (D3), and never less than what exists:
// Kubernetes cannot shrink a claim.
func wantedVolume(c Cluster, o ObservedPlane) volumeChoice {
	v := volumeChoice{bytes: volumeFor(quotas(c.Buckets))}
	// The sum itself is not told: it changes with every SystemBucket, and with it everything that prints the plan.
	v.why = quantity(v.bytes) + ": the sizes of all SystemBuckets with 10 % and 4Gi on top, at least 10Gi, in steps of 5Gi."
	need := max(v.bytes, stepFor(o.Claims))
	if want := max(need, o.largest()); want > v.bytes {
		v.bytes = want
		v.why = quantity(v.bytes) + ", more than the SystemBuckets need now: volumes grow when less than 5 % is free, and never shrink."
	}
	v.verdict = capacity(c, o, sizes{need: need, want: v.bytes})
	return v
}

// asLargeAs is the choice for a plane that takes the content of volumes of so many bytes, whatever the buckets ask for:
// they may hold more than the quotas of today.
func (v volumeChoice) asLargeAs(c Cluster, o ObservedPlane, bytes int64) volumeChoice {
	need := max(volumeFor(quotas(c.Buckets)), stepFor(o.Claims))
	return volumeChoice{
		bytes: bytes, why: quantity(bytes) + ", as large as the volumes that the store moves from.",
		verdict: capacity(c, o, sizes{need: need, want: bytes}),
	}
}

// volumeFor is D1 for the sum of all quotas.
func volumeFor(sum int64) int64 {
	need := max(sum+(sum+9)/10+metadataBytes, smallestBytes)
	return (need + stepBytes - 1) / stepBytes * stepBytes
}

// stepFor is the next step for the largest full volume, 0 when none is full. It counts from the size that the volume
// had when it was measured: an old measurement asks for the same step again, not for another one.
func stepFor(claims []Claim) int64 {
	var step int64
	for _, c := range claims {
		if c.Full && c.FullBytes > 0 {
			step = max(step, (min(c.FullBytes, mostBytes)/stepBytes+1)*stepBytes)
		}
	}
	return step
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
