package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRefusalsNameTheWayOut(t *testing.T) {
	rigid := StorageClass{Name: "rigid", Default: true}
	cases := map[string]struct {
		reason  string
		verdict Verdict
		want    string
	}{
		"two masters": {
			reason:  "F5: both numbers and the three ways out",
			verdict: cluster().masters(2).bucket(1).decide().Placement,
			want: "Three replicas, each on a node of its own, need 3 nodes with the label node-role.kubernetes.io/control-plane, and the cluster has 2 (master-0, master-1). " +
				"Ways out: give the label node-role.deckhouse.io/system-s3 to 3 nodes, add nodes with the label node-role.kubernetes.io/control-plane, " +
				"or set highAvailability: false in ModuleConfig system-s3.",
		},
		"one node with the module's role": {
			reason:  "F5: more nodes of the tier are the same as the role for more nodes",
			verdict: cluster().masters(3).systemS3Nodes(1).bucket(1).decide().Placement,
			want: "Three replicas, each on a node of its own, need 3 nodes with the label node-role.deckhouse.io/system-s3, and the cluster has 1 (s3-0). " +
				"Ways out: give the label node-role.deckhouse.io/system-s3 to 3 nodes, or set highAvailability: false in ModuleConfig system-s3.",
		},
		"one replica without a node": {
			reason:  "there is no smaller mode to go to",
			verdict: cluster().workers(1).bucket(1).decide().Placement,
			want: "One replica needs 1 node with the label node-role.kubernetes.io/control-plane, and the cluster has none. " +
				"Ways out: give the label node-role.deckhouse.io/system-s3 to a node, or add nodes with the label node-role.kubernetes.io/control-plane.",
		},
		"no class": {
			reason:  "E1: the three levels",
			verdict: cluster().masters(1).classes().bucket(1).decide().Storage,
			want: "The cluster has no default StorageClass and the settings name none: set storageClass in ModuleConfig system-s3, or modules.storageClass in ModuleConfig global, " +
				"or make a StorageClass the default one.",
		},
		"unknown class": {
			reason:  "the setting and the class are named",
			verdict: cluster().masters(1).globalStorageClass("gone").bucket(1).decide().Storage,
			want: "StorageClass gone, named by the setting modules.storageClass in ModuleConfig global, does not exist: create it, or " +
				"set storageClass in ModuleConfig system-s3, or modules.storageClass in ModuleConfig global, or make a StorageClass the default one.",
		},
		"volumes cannot grow": {
			reason:  "both sizes, the class and the ways out",
			verdict: cluster().masters(3).classes(rigid).bucket(40).store(3, "rigid", 10).decide().Capacity,
			want: "Volumes should be 50Gi and data-garage-a-0 (10Gi), data-garage-a-1 (10Gi), data-garage-a-2 (10Gi) are not, but StorageClass rigid does not allow them to grow while in use: " +
				"allow it with allowVolumeExpansion: true if its storage can do it, or lower the sizes of SystemBuckets and delete objects. " +
				"Uploads are refused with InsufficientStorage before a volume is full; reads and deletes go on.",
		},
		"the class is gone": {
			reason:  "the cause is another one, and so is the way out",
			verdict: cluster().masters(1).classes().bucket(1).store(1, "rigid", 10).on(0, filled).decide().Capacity,
			want: "Volumes should be 15Gi and data-garage-a-0 (10Gi) is not, but StorageClass rigid does not exist any more, and nothing can make them grow: " +
				"create it again with allowVolumeExpansion: true, or lower the sizes of SystemBuckets and delete objects. " +
				"Uploads are refused with InsufficientStorage before a volume is full; reads and deletes go on.",
		},
		"full": {
			reason:  "which replicas, and that it mends itself",
			verdict: cluster().masters(3).bucket(1).store(3, "local", 10).on(0, filled).on(2, filled).decide().Capacity,
			want: "Less than 5 % is free on data-garage-a-0 (10Gi), data-garage-a-2 (10Gi): volumes grow by themselves to 15Gi. " +
				"Should they not grow soon enough, delete objects.",
		},
		"the storage fails to grow": {
			reason: "its own words, which claim, and who has to act",
			verdict: cluster().masters(3).bucket(40).store(3, "local", 10).template(50).on(0, failing(50, "no space left in vg-1.")).
				on(1, failing(50, "no space left in vg-1")).decide().Capacity,
			want: "Volumes should grow to 50Gi, and the storage fails to do it, which it tries again: data-garage-a-0: no space left in vg-1; " +
				"data-garage-a-1: no space left in vg-1. Make room in the storage of StorageClass local, or lower the sizes of SystemBuckets and delete objects.",
		},
		"two masters, volumes bound at once": {
			reason:  "E2: what binds a replica besides the tier",
			verdict: cluster().masters(2).classes(StorageClass{Name: "now", Default: true, Immediate: true}).highAvailability(true).bucket(1).decide().Placement,
			want: "Three replicas, each on a node of its own, need 3 nodes with the label node-role.kubernetes.io/control-plane, and the cluster has 2 (master-0, master-1). " +
				"Ways out: give the label node-role.deckhouse.io/system-s3 to 3 nodes, add nodes with the label node-role.kubernetes.io/control-plane, " +
				"or set highAvailability: false in ModuleConfig system-s3. " +
				"StorageClass now has volumeBindingMode Immediate, not WaitForFirstConsumer: a replica is tied to wherever its volume landed.",
		},
		"mode and class at once": {
			reason: "each wish that is not carried out has its sentence, with the setting that asks",
			verdict: cluster().masters(3).classes(rigid).storageClass("fast").highAvailability(false).
				bucket(1).store(3, "rigid", 10).decide().Migration,
			want: "The setting highAvailability: false in ModuleConfig system-s3 asks for one replica; before, it is proven that each of the three holds all copies. " +
				"It can be called back until the volumes of the others are deleted. " +
				"StorageClass fast, named by the setting storageClass in ModuleConfig system-s3, does not exist: create it, or set storageClass in ModuleConfig system-s3, " +
				"or modules.storageClass in ModuleConfig global, or make a StorageClass the default one.",
		},
		"three are asked of one, and there are two nodes": {
			reason:  "both numbers, who asks, and the ways out",
			verdict: cluster().masters(2).highAvailability(true).bucket(1).store(1, "local", 10).decide().Migration,
			want: "The setting highAvailability: true in ModuleConfig system-s3 asks for three replicas; the store stays with one, because " +
				"three replicas, each on a node of its own, need 3 nodes with the label node-role.kubernetes.io/control-plane, and the cluster has 2 (master-0, master-1). " +
				"Ways out: give the label node-role.deckhouse.io/system-s3 to 3 nodes, add nodes with the label node-role.kubernetes.io/control-plane, " +
				"or set highAvailability: false in ModuleConfig system-s3.",
		},
		"the default class changed to one that binds at once": {
			reason:  "nobody wrote it down, the cluster asks; what is wrong with the class, and both ways out",
			verdict: cluster().masters(3).classes(StorageClass{Name: "now", Default: true, Immediate: true}).bucket(1).store(3, "old", 10).decide().Migration,
			want: "The cluster, by its default class, asks for StorageClass now, which has volumeBindingMode Immediate: its volumes would tie the new replicas to wherever they land. " +
				"The store stays on old. Name a class with WaitForFirstConsumer, or old again.",
		},
		"another class, and a node too few": {
			reason:  "E3: the new plane needs as many nodes as it has replicas; both numbers and the ways out",
			verdict: cluster().masters(2).highAvailability(true).bucket(1).store(3, "old", 10).decide().Migration,
			want: "The cluster, by its default class, asks for StorageClass local; the store stays on old, because three replicas, each on a node of its own, " +
				"need 3 nodes with the label node-role.kubernetes.io/control-plane, and the cluster has 2 (master-0, master-1). " +
				"Ways out: give the label node-role.deckhouse.io/system-s3 to 3 nodes, add nodes with the label node-role.kubernetes.io/control-plane, " +
				"or set highAvailability: false in ModuleConfig system-s3.",
		},
		"another class and three replicas, and a node too few": {
			reason:  "the nodes are told once",
			verdict: cluster().masters(2).highAvailability(true).bucket(1).store(1, "old", 10).decide().Migration,
			want: "The setting highAvailability: true in ModuleConfig system-s3 asks for three replicas; the store stays with one, because " +
				"three replicas, each on a node of its own, need 3 nodes with the label node-role.kubernetes.io/control-plane, and the cluster has 2 (master-0, master-1). " +
				"Ways out: give the label node-role.deckhouse.io/system-s3 to 3 nodes, add nodes with the label node-role.kubernetes.io/control-plane, " +
				"or set highAvailability: false in ModuleConfig system-s3. " +
				"The cluster, by its default class, asks for StorageClass local; the move waits for the same nodes.",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.False(t, c.verdict.OK)
			require.Equal(t, c.want, c.verdict.Message, c.reason)
		})
	}
}

func TestReasonsSpeak(t *testing.T) {
	immediate := StorageClass{Name: "now", Default: true, Immediate: true}
	cases := map[string]struct {
		reason string
		got    string
		want   string
	}{
		"immediate binding": {
			reason: "E2: say what it means",
			got:    cluster().masters(1).classes(immediate).bucket(1).decide().Planes[0].Reasons.StorageClass,
			want: "StorageClass now, the default one of the cluster. StorageClass now has volumeBindingMode Immediate, not WaitForFirstConsumer: " +
				"a replica is tied to wherever its volume landed.",
		},
		"immediate binding, where people look": {
			reason: "E2: the condition says it, too",
			got:    cluster().masters(1).classes(immediate).bucket(1).decide().Placement.Message,
			want: "One replica on nodes with the label node-role.kubernetes.io/control-plane. StorageClass now has volumeBindingMode Immediate, not WaitForFirstConsumer: " +
				"a replica is tied to wherever its volume landed.",
		},
		"growth": {
			reason: "which volumes, to which size, and what they wait for",
			got: cluster().masters(3).bucket(40).store(3, "local", 10).template(50).on(0, grown(50)).
				on(1, func(c *Claim) { c.Bytes, c.AwaitsPod = 50*gibi, true }).decide().Capacity.Message,
			want: "Volumes grow to 50Gi, one after the other: data-garage-a-1, whose file system grows as soon as its replica runs, data-garage-a-2.",
		},
		"the size": {
			reason: "D1: how it comes about; the sum would change with every bucket",
			got:    cluster().masters(1).bucket(40).decide().Planes[0].Reasons.Volume,
			want:   "50Gi: the sizes of all SystemBuckets with 10 % and 4Gi on top, at least 10Gi, in steps of 5Gi.",
		},
		"a larger size": {
			reason: "D2, D3: why it is more than the buckets need",
			got:    cluster().masters(1).bucket(1).store(1, "local", 10).on(0, filled).decide().Planes[0].Reasons.Volume,
			want:   "15Gi, more than the SystemBuckets need now: volumes grow when less than 5 % is free, and never shrink.",
		},
		"a lost master": {
			reason: "C5: what keeps three replicas, and what would end it",
			got:    cluster().masters(1).bucket(1).store(3, "local", 10).decide().Planes[0].Reasons.Replicas,
			want:   "Three replicas, as created: the control plane has one node now, and the store shrinks only when highAvailability: false is written down.",
		},
		"the mode's setting": {
			reason: "C5: the level that decided",
			got:    cluster().masters(1).globalHighAvailability(true).bucket(1).decide().Planes[0].Reasons.Replicas,
			want:   "Three replicas, because of the setting highAvailability: true in ModuleConfig global.",
		},
		"the tier": {
			reason: "F1: why this one and not the one before",
			got:    cluster().masters(3).systemNodes(3).bucket(1).decide().Planes[0].Reasons.Tier,
			want:   "Nodes with the label node-role.deckhouse.io/system, because no node has node-role.deckhouse.io/system-s3.",
		},
		"a deleted class": {
			reason: "what still works and what does not",
			got:    cluster().masters(3).classes().bucket(1).store(3, "local", 10).decide().Planes[0].Reasons.StorageClass,
			want:   "StorageClass local, as created. It does not exist any more: volumes that are there go on, new ones cannot be made.",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, c.got, c.reason)
		})
	}
}
