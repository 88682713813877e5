package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMoveSpeaks(t *testing.T) {
	two := func(want string) story { return moving(want).second(RoleTarget, "new", 3) }
	cases := map[string]struct {
		reason string
		got    string
		want   string
	}{
		"it begins": {
			reason: "who asks, and the way back",
			got:    moving("new").decide().Migration.Message,
			want: "The setting storageClass in ModuleConfig system-s3 asks for StorageClass new: a second plane with three replicas is made ready beside the store, which serves. " +
				"Until the switch it can be called back: ask for StorageClass old again.",
		},
		"copying": {
			reason: "from where to where, what clients notice, and the way back",
			got:    two("new").phase(PhaseCopying).decide().Migration.Message,
			want: "The store moves from StorageClass old to new, from plane a to plane b: objects are copied, and clients notice nothing. " +
				"Until the switch it can be called back: ask for StorageClass old again.",
		},
		"called back too late": {
			reason: "what becomes of the wish",
			got:    two("old").phase(PhaseFencing).decide().Migration.Message,
			want: "The store moves from StorageClass old to new, from plane a to plane b: writes wait for some seconds, then the new plane is the store. " +
				"From the fence on it is finished before it can be changed again. " +
				"The setting storageClass in ModuleConfig system-s3 asks for StorageClass old: that begins when this is finished.",
		},
		"another number of replicas": {
			reason: "the stated order",
			got:    two("new").highAvailability(false).phase(PhaseVerifying).decide().Migration.Message,
			want: "The store moves from StorageClass old to new, from plane a to plane b: every copy is read back and compared, and clients notice nothing. " +
				"Until the switch it can be called back: ask for StorageClass old again. " +
				"The setting highAvailability: false in ModuleConfig system-s3 asks for one replica: that begins when this is finished.",
		},
		"a change of copies goes first": {
			reason: "the stated order",
			got: moving("new").facts(Facts{StorageClass: "old", Replicas: 3, ReplicationFactor: 3, Epoch: 3}, Progress{Epoch: 3, Serving: true, Whole: 2}).
				decide().Migration.Message,
			want: "The store has three replicas; it is not proven yet that each of them holds all copies. Clients are served as soon as all tables are equal. " +
				"The setting storageClass in ModuleConfig system-s3 asks for StorageClass new; the move begins when that is finished.",
		},
		"two active planes": {
			reason: "what contradicts what, and the way out",
			got:    moving("new").second(RoleActive, "new", 3).decide().Storage.Message,
			want: "The store stays as it is, because 2 planes (a, b) call themselves the active one: set the annotation system-s3.deckhouse.io/role of StatefulSet and Secret " +
				"to active for the one that has the data, and to target for the other.",
		},
		"the target is lost behind the fence": {
			reason: "what is missing, and the way out",
			got:    moving("new").phase(PhaseFencing).decide().Storage.Message,
			want: "The store stays as it is: its move from plane a to plane b cannot be called back any more, and nothing of plane b exists. " +
				"Put Secret garage-b back from a backup.",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, c.got, c.reason)
		})
	}
}
