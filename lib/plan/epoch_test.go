package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// shape is a store in the middle of a change, with three volumes.
func (t story) shape(f Facts, p Progress) story {
	t = t.store(3, "local", 10)
	f.StorageClass = "local"
	t.c.Planes[0].Facts, t.c.Planes[0].Progress = f, p
	for i := range t.c.Planes[0].Claims {
		t = t.on(i, func(c *Claim) { c.Node = t.c.Nodes[i%len(t.c.Nodes)].Name })
	}
	return t
}

var (
	between  = Facts{Replicas: 3, ReplicationFactor: 1, Epoch: 2, Survivor: 1}
	three    = Facts{Replicas: 3, ReplicationFactor: 3, Epoch: 3}
	running2 = Progress{Epoch: 2, Serving: true}
)

func TestReplicasChangeByEpochs(t *testing.T) {
	base := cluster().masters(3).bucket(1)
	silent := func(c *Claim) { c.Up = false }
	cases := map[string]struct {
		reason string
		story  story
		want   Facts
		told   string
		survey bool
	}{
		"up: the volumes of an earlier time are not deleted yet": {
			reason: "what was without a role brings deleted objects back",
			story:  base.shape(Facts{Replicas: 1, ReplicationFactor: 1, Epoch: 2, Survivor: 1}, Progress{Epoch: 2, Serving: true, Whole: 2}),
			want:   Facts{Replicas: 1, ReplicationFactor: 1, Epoch: 2, Survivor: 1}, told: ReasonPreparing,
		},
		"up: the store does not serve": {
			reason: "nothing changes while something is wrong",
			story:  base.store(1, "local", 10).progress(Progress{Epoch: 1}),
			want:   Facts{Replicas: 1, ReplicationFactor: 1, Epoch: 1}, told: ReasonPreparing,
		},
		"up: nothing is known of the store": {
			reason: "the controller has not spoken",
			story:  base.store(1, "local", 10).progress(Progress{}),
			want:   Facts{Replicas: 1, ReplicationFactor: 1, Epoch: 1}, told: ReasonPreparing,
		},
		"up: a node too few": {
			reason: "C3, F5: it would wait in the middle for nothing",
			story:  cluster().masters(2).highAvailability(true).bucket(1).store(1, "local", 10),
			want:   Facts{Replicas: 1, ReplicationFactor: 1, Epoch: 1}, told: ReasonBlocked,
		},
		"up: a new replica has no node yet": {
			reason: "the store goes on with its only copy",
			story:  base.shape(between, running2).on(2, silent), want: between, told: ReasonPreparing,
		},
		"up: a new volume is not bound": {
			reason: "an answer of before does not make a volume",
			story:  base.shape(between, running2).on(0, func(c *Claim) { c.Bound = false }), want: between, told: ReasonPreparing,
		},
		"up: all are ready": {
			reason: "C6: the epoch rises, every replica gets a role",
			story:  base.shape(between, running2), want: three, told: ReasonSwitching,
		},
		"up: called back in the middle": {
			reason: "the others have no role, so nothing is lost by them",
			story:  base.shape(between, Progress{Epoch: 2, Whole: 2}).highAvailability(false),
			want:   Facts{Replicas: 1, ReplicationFactor: 1, Epoch: 2, Survivor: 1}, told: ReasonFinished,
		},
		"up: called back after the restart": {
			reason: "the point of no return: only the old replica may have everything",
			story:  base.shape(three, Progress{Epoch: 3, Serving: true, Proven: true}).highAvailability(false), want: three, told: ReasonCopying,
		},
		"up: the copies are not proven": {
			reason: "healthy is not whole", story: base.shape(three, Progress{Epoch: 3, Serving: true, Whole: 2}), want: three, told: ReasonCopying,
		},
		"up: finished": {
			reason: "the end", story: base.shape(three, Progress{Epoch: 3, Serving: true, Whole: 3}), want: three, told: ReasonNotNeeded,
		},
		"down: nobody wrote it down": {
			reason: "C5: a lost master takes no copies with it",
			story:  cluster().masters(1).bucket(1).shape(three, Progress{Epoch: 3, Serving: true, Whole: 3, Proven: true}),
			want:   three, told: ReasonNotNeeded,
		},
		"down: written down": {
			reason: "C5: first the proof",
			story:  base.shape(three, Progress{Epoch: 3, Serving: true, Whole: 3}).highAvailability(false),
			want:   three, told: ReasonVerifying, survey: true,
		},
		"down: the platform wrote it down": {
			reason: "C5: its setting is explicit as well",
			story:  base.shape(three, Progress{Epoch: 3, Serving: true, Whole: 3}).globalHighAvailability(false),
			want:   three, told: ReasonVerifying, survey: true,
		},
		"down: a proof of another epoch": {
			reason: "the layout of this epoch is not in force",
			story:  base.shape(three, Progress{Epoch: 2, Whole: 3, Proven: true}).highAvailability(false),
			want:   three, told: ReasonVerifying, survey: true,
		},
		"down: proven": {
			reason: "the lowest ordinal, when all fit equally",
			story:  base.shape(three, Progress{Epoch: 3, Serving: true, Whole: 3, Proven: true}).highAvailability(false),
			want:   Facts{Replicas: 3, ReplicationFactor: 1, Epoch: 4}, told: ReasonSwitching,
		},
		"down: the best node": {
			reason: "the one of the tier, with room, that answers",
			story: base.systemS3Nodes(1).shape(three, Progress{Epoch: 3, Serving: true, Whole: 3, Proven: true}).highAvailability(false).
				on(0, filled).on(2, func(c *Claim) { c.Node = "s3-0" }),
			want: Facts{Replicas: 3, ReplicationFactor: 1, Epoch: 4, Survivor: 2}, told: ReasonSwitching,
		},
		"down: one does not answer": {
			reason: "never onto a replica that may be gone",
			story:  base.shape(three, Progress{Epoch: 3, Serving: true, Whole: 3, Proven: true}).highAvailability(false).on(0, silent),
			want:   Facts{Replicas: 3, ReplicationFactor: 1, Epoch: 4, Survivor: 1}, told: ReasonSwitching,
		},
		"down: the one that stays is not proven": {
			reason: "the volumes of the others stay until then",
			story:  base.shape(between, running2).highAvailability(false), want: between, told: ReasonVerifying,
		},
		"down: called back": {
			reason: "on the same data",
			story:  base.shape(between, running2).highAvailability(true), want: three, told: ReasonSwitching,
		},
		"down: called back too late for the old volumes": {
			reason: "what was deleted since would come back",
			story:  base.shape(between, running2).highAvailability(true).on(2, func(c *Claim) { c.Stale = true }), want: between, told: ReasonBlocked,
		},
		"down: called back before the change has begun": {
			reason: "one change after the other: replicas of two epochs are no quorum",
			story:  base.shape(between, Progress{Epoch: 1, Serving: true}).highAvailability(true), want: between, told: ReasonSwitching,
		},
		"down: a replica was restarted before it was handed everything": {
			reason: "the three together have everything, and it alone has not",
			story:  base.shape(between, Progress{Epoch: 1, Spoiled: 2}).highAvailability(false), want: three, told: ReasonSwitching,
		},
		"down: an accident of an earlier epoch": {
			reason: "it is over",
			story:  base.shape(between, Progress{Epoch: 2, Spoiled: 1}).highAvailability(false), want: between, told: ReasonVerifying,
		},
		"a fact cannot be read": {
			reason: "frozen", story: base.shape(between, running2).broken("Lost.", true), want: between, told: ReasonNotNeeded,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := c.story.decide()
			c.want.StorageClass, c.want.Role = "local", RoleActive
			require.Equal(t, c.want, factsOf(p.Planes[0]), c.reason)
			require.Equal(t, c.told, p.Migration.Reason, c.reason)
			require.Equal(t, c.told != ReasonBlocked, p.Migration.OK)
			require.Equal(t, c.survey, p.Planes[0].Survey)
		})
	}
}

func TestWhoHasARole(t *testing.T) {
	cases := map[string]struct {
		reason string
		facts  Facts
		want   []int
		start  int
	}{
		"one":     {"a StatefulSet of one begins where the replica is", Facts{Replicas: 1, ReplicationFactor: 1, Survivor: 2}, []int{2}, 2},
		"between": {"three Pods, and only one holds data", Facts{Replicas: 3, ReplicationFactor: 1, Survivor: 2}, []int{2}, 0},
		"three":   {"each", Facts{Replicas: 3, ReplicationFactor: 3}, []int{0, 1, 2}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, c.facts.Members(), c.reason)
			require.Equal(t, c.start, c.facts.start(), c.reason)
		})
	}
}
