package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// outline is what a case of the table checks of a plan; the whole shape is checked by the chart's golden files.
type outline struct {
	replicas  int // 0: no plane
	tier      Tier
	class     string
	volume    string
	storage   string
	placement string
	capacity  string
	migration string
}

func outlineOf(p Plan) outline {
	o := outline{storage: p.Storage.Reason, placement: p.Placement.Reason, capacity: p.Capacity.Reason, migration: p.Migration.Reason}
	if len(p.Planes) > 0 {
		first := p.Planes[0]
		o.replicas, o.tier, o.class, o.volume = first.Replicas, first.Tier, first.StorageClass, first.VolumeSize
	}
	return o
}

// running is the outline of a healthy store of three on masters, changed by the case.
func running(change func(*outline)) outline {
	o := outline{
		replicas: 3, tier: TierMasters, class: "local", volume: "10Gi",
		storage: ReasonReady, placement: ReasonPlaced, capacity: ReasonEnough, migration: ReasonNotNeeded,
	}
	if change != nil {
		change(&o)
	}
	return o
}

func waiting(reason string) outline {
	return outline{storage: reason, placement: ReasonPlaced, capacity: ReasonEnough, migration: ReasonNotNeeded}
}

func TestDecide(t *testing.T) {
	fast := StorageClass{Name: "fast", Expandable: true}
	rigid := StorageClass{Name: "rigid", Default: true}
	cases := map[string]struct {
		reason string
		story  story
		want   outline
	}{
		"no bucket": {
			reason: "C1: nothing runs before the first SystemBucket",
			story:  cluster().masters(3), want: waiting(ReasonWaitingForFirstBucket),
		},
		"no bucket and no class": {
			reason: "C1: before the first SystemBucket nothing is missing",
			story:  cluster().masters(3).classes(), want: waiting(ReasonWaitingForFirstBucket),
		},
		"three masters": {
			reason: "C3, C5: the control plane is fault-tolerant",
			story:  cluster().masters(3).bucket(1), want: running(nil),
		},
		"one master": {
			reason: "C4, C5: the control plane is not",
			story:  cluster().masters(1).bucket(1), want: running(func(o *outline) { o.replicas = 1 }),
		},
		"the platform asks for one": {
			reason: "C5: global.highAvailability comes before the control plane",
			story:  cluster().masters(3).globalHighAvailability(false).bucket(1), want: running(func(o *outline) { o.replicas = 1 }),
		},
		"the module asks for three, the platform for one": {
			reason: "C5: highAvailability comes first",
			story:  cluster().masters(3).globalHighAvailability(false).highAvailability(true).bucket(1), want: running(nil),
		},
		"two masters": {
			reason: "F5: three are wanted, the third has no place",
			story:  cluster().masters(2).bucket(1), want: running(func(o *outline) { o.placement = ReasonPlacementBlocked }),
		},
		"three wanted on one master": {
			reason: "F5: the same with highAvailability on one master",
			story:  cluster().masters(1).highAvailability(true).bucket(1),
			want:   running(func(o *outline) { o.placement = ReasonPlacementBlocked }),
		},
		"one node with the module's role": {
			reason: "F1: existence decides, one node draws the whole data plane",
			story:  cluster().masters(3).systemNodes(3).systemS3Nodes(1).bucket(1),
			want:   running(func(o *outline) { o.tier, o.placement = TierSystemS3, ReasonPlacementBlocked }),
		},
		"three nodes with the module's role": {
			reason: "F1",
			story:  cluster().masters(3).systemS3Nodes(3).bucket(1), want: running(func(o *outline) { o.tier = TierSystemS3 }),
		},
		"system nodes": {
			reason: "F1: the second tier",
			story:  cluster().masters(3).systemNodes(3).workers(5).bucket(1), want: running(func(o *outline) { o.tier = TierSystem }),
		},
		"no node of any tier": {
			reason: "F1 ends with masters; a cluster that shows none has no place",
			story:  cluster().workers(3).bucket(1),
			want:   running(func(o *outline) { o.replicas, o.placement = 1, ReasonPlacementBlocked }),
		},
		"no class at all": {
			reason: "E1: without any class nothing is deployed",
			story:  cluster().masters(3).classes().bucket(1), want: waiting(ReasonNoStorageClass),
		},
		"no default class": {
			reason: "E1: a class that nobody chose is not taken",
			story:  cluster().masters(3).classes(fast).bucket(1), want: waiting(ReasonNoStorageClass),
		},
		"a class that does not exist": {
			reason: "E1: the setting is not passed over for the default class",
			story:  cluster().masters(3).storageClass("gone").bucket(1), want: waiting(ReasonNoStorageClass),
		},
		"the module names a class": {
			reason: "E1: the module's setting comes first",
			story:  cluster().masters(3).classes(rigid, fast).storageClass("fast").globalStorageClass("rigid").bucket(1),
			want:   running(func(o *outline) { o.class = "fast" }),
		},
		"the platform names a class": {
			reason: "E1: the platform's setting comes before the default class",
			story:  cluster().masters(3).classes(rigid, fast).globalStorageClass("fast").bucket(1),
			want:   running(func(o *outline) { o.class = "fast" }),
		},
		"two default classes": {
			reason: "the newest, as Kubernetes takes it",
			story: cluster().masters(3).classes(
				StorageClass{Name: "a", Default: true, CreatedAt: "2025-01-01T00:00:00Z"},
				StorageClass{Name: "b", Default: true, CreatedAt: "2026-01-01T00:00:00Z"}).bucket(1),
			want: running(func(o *outline) { o.class = "b" }),
		},
		"a large bucket": {
			reason: "D1: 40 GiB + 10 % + 4 GiB, up to the next 5 GiB",
			story:  cluster().masters(3).bucket(40), want: running(func(o *outline) { o.volume = "50Gi" }),
		},
		"the last bucket is gone": {
			reason: "C2: the store stays",
			story:  cluster().masters(3).store(3, "local", 20), want: running(func(o *outline) { o.volume = "20Gi" }),
		},
		"a smaller bucket": {
			reason: "D2: volumes never shrink",
			story:  cluster().masters(3).bucket(1).store(3, "local", 50), want: running(func(o *outline) { o.volume = "50Gi" }),
		},
		"a larger bucket": {
			reason: "D2: volumes grow with the sum",
			story:  cluster().masters(3).bucket(40).store(3, "local", 10),
			want:   running(func(o *outline) { o.volume, o.capacity = "50Gi", ReasonGrowing }),
		},
		"a larger bucket on a class that cannot grow": {
			reason: "D2: the plan grows all the same, so that a new replica starts right; what exists cannot",
			story:  cluster().masters(3).classes(rigid).bucket(40).store(3, "rigid", 10),
			want:   running(func(o *outline) { o.class, o.volume, o.capacity = "rigid", "50Gi", ReasonExpansionNotAllowed }),
		},
		"growth half done": {
			reason: "the StatefulSet has the new size and a claim has not yet",
			story:  cluster().masters(3).bucket(40).store(3, "local", 50).claims(10),
			want:   running(func(o *outline) { o.volume, o.capacity = "50Gi", ReasonGrowing }),
		},
		"a master is lost": {
			reason: "C5: never shrinks while highAvailability: false is not written down",
			story:  cluster().masters(1).bucket(1).store(3, "local", 10),
			want:   running(func(o *outline) { o.placement = ReasonPlacementBlocked }),
		},
		"one is asked of three": {
			reason: "a mode that is written down and not carried out is said",
			story:  cluster().masters(3).highAvailability(false).bucket(1).store(3, "local", 10),
			want:   running(func(o *outline) { o.migration = ReasonBlocked }),
		},
		"three masters after one": {
			reason: "a wanted mode that is not carried out is said",
			story:  cluster().masters(3).bucket(1).store(1, "local", 10),
			want:   running(func(o *outline) { o.replicas, o.migration = 1, ReasonBlocked }),
		},
		"another class is asked for": {
			reason: "a class that is not moved to is said",
			story:  cluster().masters(3).classes(rigid, fast).storageClass("fast").bucket(1).store(3, "rigid", 10),
			want:   running(func(o *outline) { o.class, o.migration = "rigid", ReasonBlocked }),
		},
		"a class that does not exist is asked for": {
			reason: "the store goes on where it is, and the setting is named",
			story:  cluster().masters(3).storageClass("gone").bucket(1).store(3, "local", 10),
			want:   running(func(o *outline) { o.migration = ReasonBlocked }),
		},
		"the class of the store is gone": {
			reason: "volumes that are there go on; nobody asks for another class",
			story:  cluster().masters(3).classes().bucket(1).store(3, "local", 10), want: running(nil),
		},
		"the secret is lost": {
			reason: "a fact that cannot be read stops the plane and is never made anew",
			story:  cluster().masters(3).bucket(1).store(3, "local", 10).broken("Secret garage-a is gone.", true),
			want:   running(func(o *outline) { o.storage = ReasonStateUnreadable }),
		},
		"only volumes are left": {
			reason: "a store of which nothing is known is not planned over",
			story:  cluster().masters(3).bucket(1).store(3, "local", 10).broken("only volumes are left", false),
			want:   waiting(ReasonStateUnreadable),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, outlineOf(c.story.decide()), c.reason)
		})
	}
}
