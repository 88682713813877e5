package plan

import (
	"math"
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
		"growth waits for a Pod": {
			reason: "D2: the storage has grown, the file system grows with the next mount",
			story:  cluster().masters(3).bucket(40).store(3, "local", 50).on(0, func(c *Claim) { c.Capacity, c.AwaitsPod = 10*gibi, true }),
			want:   running(func(o *outline) { o.volume, o.capacity = "50Gi", ReasonGrowing }),
		},
		"growth that fails": {
			reason: "D2: what the storage says is told",
			story:  cluster().masters(3).bucket(40).store(3, "local", 10).template(50).on(0, failing(50, "no space left")),
			want:   running(func(o *outline) { o.volume, o.capacity = "50Gi", ReasonExpansionFailed }),
		},
		"a failure that has passed": {
			reason: "a claim that has what it asks for has not failed, whatever an old condition says",
			story:  cluster().masters(3).store(3, "local", 50).on(0, func(c *Claim) { c.Failure = "no space left" }),
			want:   running(func(o *outline) { o.volume = "50Gi" }),
		},
		"a full volume": {
			reason: "D3: one step, though the sum asks for nothing",
			story:  cluster().masters(3).bucket(1).store(3, "local", 10).on(2, filled),
			want:   running(func(o *outline) { o.volume, o.capacity = "15Gi", ReasonExhausted }),
		},
		"a full volume whose growth is under way": {
			reason: "D3: one step at a time: the old measurement asks for no second one",
			story:  cluster().masters(3).bucket(1).store(3, "local", 15).claims(10).on(2, filled).on(2, grown(15)),
			want:   running(func(o *outline) { o.volume, o.capacity = "15Gi", ReasonExhausted }),
		},
		"full again": {
			reason: "D3: the next step, from the size that is full",
			story:  cluster().masters(3).bucket(1).store(3, "local", 15).on(2, filled),
			want:   running(func(o *outline) { o.volume, o.capacity = "20Gi", ReasonExhausted }),
		},
		"a full volume smaller than the others": {
			reason: "D3: what it needs is planned already",
			story:  cluster().masters(3).bucket(1).store(3, "local", 50).on(1, grown(10)).on(1, filled),
			want:   running(func(o *outline) { o.volume, o.capacity = "50Gi", ReasonExhausted }),
		},
		"a full volume of an odd size": {
			reason: "D1: sizes are multiples of 5 GiB",
			story:  cluster().masters(3).bucket(1).store(3, "local", 10).on(0, grown(12)).on(0, filled),
			want:   running(func(o *outline) { o.volume, o.capacity = "15Gi", ReasonExhausted }),
		},
		"a full volume and a larger bucket": {
			reason: "D2, D3: the larger of the two",
			story:  cluster().masters(3).bucket(40).store(3, "local", 10).on(0, filled),
			want:   running(func(o *outline) { o.volume, o.capacity = "50Gi", ReasonExhausted }),
		},
		"a full volume while nobody answers": {
			reason: "D3: Garage cannot start on a full volume; the gateway's measurement is enough",
			story:  cluster().masters(1).bucket(1).store(1, "local", 10).on(0, filled).on(0, func(c *Claim) { c.Up = false }),
			want:   running(func(o *outline) { o.replicas, o.volume, o.capacity = 1, "15Gi", ReasonExhausted }),
		},
		"a full volume on a class that cannot grow": {
			reason: "D3: a person has to act; a replica made later gets the larger volume",
			story:  cluster().masters(3).classes(rigid).bucket(1).store(3, "rigid", 10).on(0, filled),
			want:   running(func(o *outline) { o.class, o.volume, o.capacity = "rigid", "15Gi", ReasonExpansionNotAllowed }),
		},
		"a class that cannot grow, after the buckets were made smaller again": {
			reason: "D2: the plan keeps its size, what exists is enough",
			story:  cluster().masters(3).classes(rigid).bucket(1).store(3, "rigid", 50).claims(10),
			want:   running(func(o *outline) { o.class, o.volume = "rigid", "50Gi" }),
		},
		"the class of a full volume is gone": {
			reason: "D3: nobody can grow it",
			story:  cluster().masters(3).classes().bucket(1).store(3, "local", 10).on(0, filled),
			want:   running(func(o *outline) { o.volume, o.capacity = "15Gi", ReasonExpansionNotAllowed }),
		},
		"an absurd size": {
			reason: "the arithmetic holds; the storage will say that it cannot",
			story:  cluster().masters(3).bucket(math.MaxInt64/gibi).store(3, "local", 10),
			want:   running(func(o *outline) { o.volume, o.capacity = "2362232020Gi", ReasonGrowing }),
		},
		"a size of nothing": {
			reason: "D1: at least 10 GiB",
			story:  cluster().masters(3).bucket(0), want: running(nil),
		},
		"a claim grown by hand": {
			reason: "D2: never shrinks; the others follow",
			story:  cluster().masters(3).bucket(1).store(3, "local", 10).on(1, grown(30)),
			want:   running(func(o *outline) { o.volume, o.capacity = "30Gi", ReasonGrowing }),
		},
		"a storage that gives more than was asked for": {
			reason: "sizes do not chase what the storage rounds up to",
			story:  cluster().masters(3).bucket(1).store(3, "local", 10).on(1, func(c *Claim) { c.Capacity = 11 * gibi }), want: running(nil),
		},
		"such a storage is full": {
			reason: "D3: the step counts from what the volume has",
			story:  cluster().masters(3).bucket(1).store(3, "local", 15).on(1, func(c *Claim) { c.Capacity = 16 * gibi }).on(1, filled),
			want:   running(func(o *outline) { o.volume, o.capacity = "20Gi", ReasonExhausted }),
		},
		"the StatefulSet was deleted by hand": {
			reason: "the Secret and the claims remember; the chart puts it back as it was",
			story:  cluster().masters(3).bucket(1).store(3, "local", 50).template(0), want: running(func(o *outline) { o.volume = "50Gi" }),
		},
		"immediate binding": {
			reason: "E2: it is said, and stops nothing",
			story:  cluster().masters(3).classes(StorageClass{Name: "local", Default: true, Immediate: true}).bucket(1), want: running(nil),
		},
		"three of the tier, of which the store lost one": {
			reason: "F4: the store goes on with two; the third has no place",
			story:  cluster().masters(3).systemS3Nodes(2).bucket(1).store(3, "local", 10),
			want:   running(func(o *outline) { o.tier, o.placement = TierSystemS3, ReasonPlacementBlocked }),
		},
		"three of the tier, of which the store lost two": {
			reason: "F4: no quorum, and still no other tier",
			story:  cluster().masters(3).systemS3Nodes(1).bucket(1).store(3, "local", 10),
			want:   running(func(o *outline) { o.tier, o.placement = TierSystemS3, ReasonPlacementBlocked }),
		},
		"the role comes after the store": {
			reason: "F1: existence decides, also later",
			story:  cluster().masters(3).systemS3Nodes(3).bucket(1).store(3, "local", 10),
			want:   running(func(o *outline) { o.tier = TierSystemS3 }),
		},
		"all nodes of the tier are gone": {
			reason: "F1: the tier does not exist any more, the next one does",
			story:  cluster().masters(3).systemNodes(0).bucket(1).store(3, "local", 10), want: running(nil),
		},
		"both roles on one node": {
			reason: "F1: the first tier that exists, whatever else the node carries",
			story: func() story {
				t := cluster().masters(3).systemNodes(3)
				t.c.Nodes[4].Labels = append(t.c.Nodes[4].Labels, SystemS3NodeLabel, MasterNodeLabel)
				return t.bucket(1)
			}(),
			want: running(func(o *outline) { o.tier, o.placement = TierSystemS3, ReasonPlacementBlocked }),
		},
		"one replica, wanted by the module on three masters": {
			reason: "C5: written down",
			story:  cluster().masters(3).highAvailability(false).bucket(1), want: running(func(o *outline) { o.replicas = 1 }),
		},
		"three replicas by the module, then a master is lost": {
			reason: "C5: nobody asks for less",
			story:  cluster().masters(2).highAvailability(true).bucket(1).store(3, "local", 10),
			want:   running(func(o *outline) { o.placement = ReasonPlacementBlocked }),
		},
		"a master is lost": {
			reason: "C5: never shrinks while highAvailability: false is not written down",
			story:  cluster().masters(1).bucket(1).store(3, "local", 10),
			want:   running(func(o *outline) { o.placement = ReasonPlacementBlocked }),
		},
		"one is asked of three": {
			reason: "C5: the explicit setting; first the proof",
			story:  cluster().masters(3).highAvailability(false).bucket(1).store(3, "local", 10),
			want:   running(func(o *outline) { o.migration = ReasonVerifying }),
		},
		"three masters after one": {
			reason: "C5, C6: more Pods, while the only copy serves",
			story:  cluster().masters(3).bucket(1).store(1, "local", 10),
			want:   running(func(o *outline) { o.migration = ReasonPreparing }),
		},
		"another class is asked for": {
			reason: "E3: the store serves where it is, and a target is made",
			story:  cluster().masters(3).classes(rigid, fast).storageClass("fast").bucket(1).store(3, "rigid", 10),
			want:   running(func(o *outline) { o.class, o.migration = "rigid", ReasonPreparing }),
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
