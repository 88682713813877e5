package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// phases are all phases, in their order.
var phases = []Phase{PhasePreparing, PhaseCopying, PhaseVerifying, PhaseHolding, PhaseFencing, PhaseSwitched, PhaseRetiring}

var (
	oldClass  = StorageClass{Name: "old", Expandable: true}
	newClass  = StorageClass{Name: "new", Expandable: true}
	thirdOne  = StorageClass{Name: "third", Expandable: true}
	immediate = StorageClass{Name: "now", Immediate: true}
)

// moving is a store of three on the class old, with the classes to choose from.
func moving(want string) story {
	return cluster().masters(3).classes(oldClass, newClass, thirdOne, immediate).storageClass(want).bucket(1).store(3, "old", 10)
}

// casting is planes with their roles, in short: "a active, b target 3".
func casting(p Plan) string {
	var told []string
	for _, plane := range p.Planes {
		s := fmt.Sprintf("%s %s %d on %s", plane.ID, plane.Role, plane.Replicas, plane.StorageClass)
		if plane.Frozen != "" {
			s += " frozen"
		}
		told = append(told, s)
	}
	return strings.Join(told, ", ")
}

const storeStays = "a active 3 on old"

func TestAMoveBegins(t *testing.T) {
	grew := Facts{StorageClass: "old", Replicas: 3, ReplicationFactor: 3, Epoch: 3}
	cases := map[string]struct {
		reason string
		story  story
		want   string
		told   string
	}{
		"another class":   {"E3", moving("new"), "a active 3 on old, b target 3 on new", ReasonPreparing},
		"the same class":  {"nothing to do", moving("old"), storeStays, ReasonNotNeeded},
		"the default one": {"whichever level of E1 changed", moving("").defaults("new"), "a active 3 on old, b target 3 on new", ReasonPreparing},
		"no class":        {"nobody asks", moving(""), storeStays, ReasonNotNeeded},
		"an unknown one":  {"it is awaited", moving("typo"), storeStays, ReasonBlocked},
		"a class that binds at once": {
			"E2: three replicas would land anywhere", moving("now"), storeStays, ReasonBlocked,
		},
		"too few nodes": {
			"F5 for the target", moving("new").lessMasters(2), storeStays, ReasonBlocked,
		},
		"the store does not serve": {
			"nothing is copied from what does not answer", moving("new").progress(Progress{Epoch: 1}), storeStays, ReasonPreparing,
		},
		"the store is in another epoch": {
			"the layout is not in force", moving("new").progress(Progress{Epoch: 2, Serving: true}), storeStays, ReasonPreparing,
		},
		"nothing is known of the store": {
			"the controller has not spoken", moving("new").progress(Progress{}), storeStays, ReasonPreparing,
		},
		"copies are being made": {
			"a change that has begun is finished first", moving("new").facts(grew, Progress{Epoch: 3, Serving: true, Whole: 2}), storeStays, ReasonCopying,
		},
		"replicas are made ready": {
			"also when it has hardly begun", moving("new").facts(Facts{StorageClass: "old", Replicas: 3, ReplicationFactor: 1, Epoch: 1}, Progress{Epoch: 1, Serving: true}).
				on(2, func(c *Claim) { c.Up = false }), storeStays, ReasonPreparing,
		},
		"volumes that were given up are there": {
			"the end of a change of copies", moving("new").highAvailability(false).
				facts(Facts{StorageClass: "old", Replicas: 1, ReplicationFactor: 1, Epoch: 2}, Progress{Epoch: 2, Serving: true, Whole: 2}),
			"a active 1 on old", ReasonPreparing,
		},
		"one of three is asked for as well": {
			"the target is made so", moving("new").highAvailability(false), "a active 3 on old, b target 1 on new", ReasonPreparing,
		},
		"three of one are asked for as well": {
			"the target is made so", cluster().masters(3).classes(oldClass, newClass).storageClass("new").bucket(1).store(1, "old", 10),
			"a active 1 on old, b target 3 on new", ReasonPreparing,
		},
		"a master was lost": {
			"C5: nobody wrote down that the store shrinks", moving("new").systemS3Nodes(3).lessMasters(1), "a active 3 on old, b target 3 on new", ReasonPreparing,
		},
		"the controller prepares already": {
			"the plan is the same until the target is seen", moving("new").phase(PhasePreparing), "a active 3 on old, b target 3 on new", ReasonPreparing,
		},
		"an earlier move is not put away": {
			"the word on one move is not taken for a word on another", moving("new").phase(PhaseCopying), storeStays, ReasonFinished,
		},
		"the volumes cannot grow": {
			"a full store on a class that cannot grow is what a move is for",
			moving("new").classes(StorageClass{Name: "old"}, newClass).on(0, filled), "a active 3 on old, b target 3 on new", ReasonPreparing,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := c.story.decide()
			require.Equal(t, c.want, casting(p), c.reason)
			require.Equal(t, c.told, p.Migration.Reason, p.Migration.Message)
			require.Equal(t, c.told != ReasonBlocked, p.Migration.OK)
		})
	}
}

// facts are those of the store, and what the controller tells of it.
func (t story) facts(f Facts, p Progress) story {
	t.c.Planes[0].Facts = f
	return t.progress(p)
}

// defaults makes a class the default one.
func (t story) defaults(name string) story {
	classes := slices.Clone(t.c.Classes)
	for i := range classes {
		classes[i].Default = classes[i].Name == name
	}
	return t.classes(classes...)
}

// lessMasters leaves so many masters.
func (t story) lessMasters(n int) story {
	t.s.ControlPlaneHighlyAvailable = n > 1
	masters := 0
	t.c.Nodes = slices.DeleteFunc(slices.Clone(t.c.Nodes), func(node Node) bool {
		masters += b2i(slices.Contains(node.Labels, MasterNodeLabel))
		return slices.Contains(node.Labels, MasterNodeLabel) && masters > n
	})
	return t
}

// role of the store's plane, as it is printed.
func (t story) role(r Role) story {
	t.c.Planes[0].Role = r
	return t
}

// lose makes the second plane unreadable; known tells whether its facts are known.
func (t story) lose(known bool) story {
	o := &t.c.Planes[1]
	o.Unreadable, o.Known = "Plane b cannot be read.", known
	return t
}

const (
	goOn  = "a active 3 on old, b target 3 on new"
	abort = "a active 3 on old, b retiring 3 on new"
	done  = "a retiring 3 on old, b active 3 on new"
	stuck = "a active 3 on old frozen, b target 3 on new frozen"
)

func TestAMoveGoesOn(t *testing.T) {
	two := func(want string) story { return moving(want).second(RoleTarget, "new", 3) }
	cases := map[string]struct {
		reason string
		story  story
		want   string
		told   string
	}{
		"nothing is known yet":       {"the controller has not spoken", two("new"), goOn, ReasonPreparing},
		"preparing":                  {"", two("new").phase(PhasePreparing), goOn, ReasonPreparing},
		"copying":                    {"", two("new").phase(PhaseCopying), goOn, ReasonCopying},
		"verifying":                  {"", two("new").phase(PhaseVerifying), goOn, ReasonVerifying},
		"holding":                    {"", two("new").phase(PhaseHolding), goOn, ReasonSwitching},
		"fencing":                    {"", two("new").phase(PhaseFencing), goOn, ReasonSwitching},
		"switched":                   {"the controller's word comes before what is printed", two("new").phase(PhaseSwitched), done, ReasonFinished},
		"retiring":                   {"", two("new").phase(PhaseRetiring), done, ReasonFinished},
		"called back while made":     {"the target is disposable", two("old").phase(PhasePreparing), abort, ReasonAborting},
		"called back while copied":   {"the target is disposable", two("old").phase(PhaseCopying), abort, ReasonAborting},
		"called back while held":     {"the last moment", two("old").phase(PhaseHolding), abort, ReasonAborting},
		"called back behind fence":   {"there is no way back", two("old").phase(PhaseFencing), goOn, ReasonSwitching},
		"called back when switched":  {"there is no way back", two("old").phase(PhaseSwitched), done, ReasonFinished},
		"a third class":              {"the target goes first", two("third").phase(PhaseCopying), abort, ReasonAborting},
		"a third class, fenced":      {"one after the other", two("third").phase(PhaseFencing), goOn, ReasonSwitching},
		"a typo":                     {"what cannot be had costs nobody the copies", two("typo").phase(PhaseCopying), goOn, ReasonBlocked},
		"nobody asks any more":       {"a default class that is gone asks for nothing", two("").phase(PhaseCopying), goOn, ReasonCopying},
		"the target's class is gone": {"volumes that are there go on", two("new").classes(oldClass).phase(PhaseCopying), goOn, ReasonCopying},
		"called back, unheard": {
			"the state is lost: who knows whether it is fenced", two("old"), goOn, ReasonPreparing,
		},
		"called back, an unknown phase": {
			"a word of a newer version is no permission", two("old").phase("Rewinding"), goOn, ReasonSwitching,
		},
		"called back, a word on another move": {
			"it is not about this one", two("old").word("b", "a", PhaseCopying), goOn, ReasonPreparing,
		},
		"switched in a word on another move": {
			"planes that are not named keep their roles", two("new").word("x", "y", PhaseSwitched), goOn, ReasonPreparing,
		},
		"wanted again, too late": {
			"what goes is gone before it is made again", moving("new").second(RoleRetiring, "new", 3).phase(PhaseCopying), abort, ReasonAborting,
		},
		"the fence won": {
			"the controller persisted it before it heard that the target goes",
			moving("old").second(RoleRetiring, "new", 3).phase(PhaseFencing), goOn, ReasonSwitching,
		},
		"the switch won": {"as well", moving("old").second(RoleRetiring, "new", 3).phase(PhaseSwitched), done, ReasonFinished},
		"the state is lost at the end": {
			"the roles are printed", moving("new").role(RoleRetiring).second(RoleActive, "new", 3), done, ReasonFinished,
		},
		"the state is lost in the middle of printing": {
			"the source retires only when the target is the store",
			moving("new").role(RoleRetiring).second(RoleTarget, "new", 3), done, ReasonFinished,
		},
		"the state is lost while the target goes": {
			"it goes on", moving("old").second(RoleRetiring, "new", 3), abort, ReasonFinished,
		},
		"the target loses its secret": {
			"beside a store that is proven to be whole it is disposable", two("new").lose(true).phase(PhaseCopying), abort, ReasonAborting,
		},
		"only volumes of the target are left": {
			"as well", two("new").lose(false).phase(PhaseCopying), abort, ReasonAborting,
		},
		"the target loses its secret behind the fence": {
			"clients' writes may be there only", two("new").lose(true).phase(PhaseFencing), stuck, ReasonNotNeeded,
		},
		"the target loses its secret, and nothing is known": {
			"the same", two("new").lose(true), stuck, ReasonNotNeeded,
		},
		"the target and the store lose their secrets": {
			"there is no proof", two("new").lose(true).broken("Plane a cannot be read.", true).phase(PhaseCopying), stuck, ReasonNotNeeded,
		},
		"the source loses its secret while it goes": {
			"nobody needs it", two("new").broken("Plane a cannot be read.", true).phase(PhaseRetiring), done, ReasonFinished,
		},
		"two active planes": {
			"neither is believed", moving("new").second(RoleActive, "new", 3), "a active 3 on old frozen, b active 3 on new frozen", ReasonNotNeeded,
		},
		"no active plane": {
			"neither is believed", moving("new").role(RoleTarget).second(RoleTarget, "new", 3), "a target 3 on old frozen, b target 3 on new frozen", ReasonNotNeeded,
		},
		"the target is lost behind the fence": {
			"the store takes no writes, and what they should go to is gone", moving("new").phase(PhaseFencing), "a active 3 on old frozen", ReasonNotNeeded,
		},
		"the target is lost after the switch": {
			"the source is not the store any more", moving("new").phase(PhaseSwitched), "a retiring 3 on old frozen", ReasonNotNeeded,
		},
		"both are gone behind the fence": {
			"a store that is made anew is none of the two", moving("new").phase(PhaseFencing).without(FirstPlane), "c active 3 on new", ReasonNotNeeded,
		},
		"the source is gone": {
			"the end", moving("new").phase(PhaseRetiring).second(RoleTarget, "new", 3).without(FirstPlane), "b active 3 on new", ReasonFinished,
		},
		"one replica is wanted in the middle": {
			"no number of copies changes while there are two planes", two("new").highAvailability(false).phase(PhaseCopying), goOn, ReasonCopying,
		},
		"more replicas are wanted in the middle": {
			"the same", cluster().masters(3).classes(oldClass, newClass).storageClass("new").bucket(1).store(1, "old", 10).second(RoleTarget, "new", 1).phase(PhaseCopying),
			"a active 1 on old, b target 1 on new", ReasonCopying,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := c.story.decide()
			require.Equal(t, c.want, casting(p), "%s: %s", c.reason, p.Storage.Message)
			require.Equal(t, c.told, p.Migration.Reason, p.Migration.Message)
			require.Equal(t, strings.Contains(c.want, "frozen"), p.Storage.Reason == ReasonStateUnreadable)
		})
	}
}

// word is the controller's word on a move.
func (t story) word(source, target string, p Phase) story {
	t.c.Migration = &MigrationState{Source: source, Target: target, Phase: p}
	return t
}

// without is the story when nothing of a plane is left.
func (t story) without(id string) story {
	t.c.Planes = slices.DeleteFunc(slices.Clone(t.c.Planes), func(o ObservedPlane) bool { return o.ID == id })
	return t
}

func TestWhoIsLedWhere(t *testing.T) {
	cases := map[string]struct {
		reason string
		story  story
		want   string
	}{
		"no store":                    {"the first plane will be it", cluster().masters(1), "a"},
		"one plane":                   {"", moving("old"), "a"},
		"before the switch":           {"", moving("new").second(RoleTarget, "new", 3).phase(PhaseFencing), "a"},
		"after it":                    {"", moving("new").second(RoleTarget, "new", 3).phase(PhaseSwitched), "b"},
		"nothing is known of it":      {"clients are not led away", moving("new").second("", "new", 3).without("a").unknown(), "b"},
		"beside one of which is":      {"what is known goes first", moving("new").second("", "new", 3).lose(false), "a"},
		"two that call themselves so": {"the first", moving("new").second(RoleActive, "new", 3), "a"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, c.story.decide().Active, c.reason)
		})
	}
}

// unknown makes the only plane one of which the facts are not known.
func (t story) unknown() story { return t.broken("Nothing is known.", false) }

func TestPlanesAreNamedInTurn(t *testing.T) {
	for id, want := range map[string]string{"a": "b", "b": "c", "y": "z", "z": "a"} {
		require.Equal(t, want, following(id))
	}
}

func TestVolumesOfAMove(t *testing.T) {
	cases := map[string]struct {
		reason string
		story  story
		source string
		target string
		told   string
	}{
		"as large as the source's": {
			reason: "it may hold more than the quotas of today",
			story:  moving("new").claims(50).template(50), source: "50Gi", target: "50Gi", told: ReasonEnough,
		},
		"the buckets grow": {
			reason: "D2: both grow",
			story:  moving("new").second(RoleTarget, "new", 3).phase(PhaseCopying).bucket(40), source: "50Gi", target: "50Gi", told: ReasonGrowing,
		},
		"the source is full": {
			reason: "D3: the target keeps up",
			story:  moving("new").second(RoleTarget, "new", 3).phase(PhaseCopying).on(0, filled), source: "15Gi", target: "15Gi", told: ReasonExhausted,
		},
		"the target is full": {
			reason: "D3: it takes a step of its own",
			story:  moving("new").second(RoleTarget, "new", 3).phase(PhaseCopying).full("b"), source: "10Gi", target: "15Gi", told: ReasonExhausted,
		},
		"the source is full while it goes": {
			reason: "nobody cares any more",
			story:  moving("new").second(RoleTarget, "new", 3).phase(PhaseRetiring).on(0, filled), source: "15Gi", target: "10Gi", told: ReasonEnough,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := c.story.decide()
			require.Equal(t, []string{c.source, c.target}, []string{p.Planes[0].VolumeSize, p.Planes[1].VolumeSize}, c.reason)
			require.Equal(t, c.told, p.Capacity.Reason, p.Capacity.Message)
		})
	}
}

// full fills a volume of a plane.
func (t story) full(id string) story {
	filled(&t.c.Planes[indexOf(t.c.Planes, id)].Claims[0])
	return t
}
