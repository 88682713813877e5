package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

// printed is a plane as the chart printed it, or as a hook marked it.
type printed struct {
	class    string
	replicas int
	role     string // empty on planes of versions that had only one
	secrets  planeValues
	set      bool // whether the StatefulSet is there
}

// town is a cluster with a store, in which the hooks run and the chart is applied, time after time.
type town struct {
	t      *testing.T
	class  string // that is asked for
	planes map[string]*printed
	state  plan.State
	told   bool // whether ConfigMap data-plane is there
	values map[string]any
}

// settled is a store of three on the class local, made by a version that knew one plane only.
func settled(t *testing.T) *town {
	t.Helper()
	w := &town{t: t, told: true, class: "local", planes: map[string]*printed{
		"a": {class: "local", replicas: 3, secrets: newValues(t), set: true},
	}}
	w.serves("a")
	return w
}

// serves makes the controller tell that a plane serves.
func (w *town) serves(id string) {
	w.state.Planes = append(w.state.Planes, plan.PlaneState{ID: id, Epoch: 1, Available: true, Whole: 1})
}

func (w *town) phase(p plan.Phase) {
	w.state.Migration = &plan.MigrationState{Source: "a", Target: "b", Phase: p, Copied: 7}
}

// objects are those of the cluster, in YAML.
func (w *town) objects() string {
	found := []string{threeMasters(), defaultClass(), strings.NewReplacer("name: local", "name: fast", `"true"`, `"false"`).Replace(defaultClass()), bucket("one", "1Gi")}
	for id, p := range w.planes {
		annotations := fmt.Sprintf(`{%s: %s, %s: "%d", %s: "%d", %s: "1"}`, classFact, p.class, replicasFact, p.replicas, factorFact, p.replicas, epochFact)
		if p.role != "" {
			annotations = strings.Replace(annotations, "{", "{"+roleFact+": "+p.role+", ", 1)
		}
		rename := strings.NewReplacer("garage-a", names.GarageObject(id), "plane: a", "plane: "+id, "storageClassName: local", "storageClassName: "+p.class)
		if p.set {
			found = append(found, rename.Replace(statefulSet("10Gi", annotations)))
		}
		found = append(found, strings.Replace(rename.Replace(planeSecret(w.t, p.secrets)), factsOf(3), annotations, 1))
		for ordinal := range p.replicas {
			found = append(found, rename.Replace(claim(ordinal, "10Gi", "Bound")))
		}
	}
	if w.told {
		encoded, err := json.Marshal(w.state)
		require.NoError(w.t, err)
		found = append(found, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: data-plane, namespace: d8-system-s3}\ndata:\n  state.json: '"+string(encoded)+"'")
	}
	return state(found...)
}

// pass runs the hooks as the platform does before it applies the chart, then does what the chart would. It returns the
// planes by their roles and what was patched.
func (w *town) pass() (roles string, patched []string) {
	w.t.Helper()
	decided := onHarness(w.t, planConfig(), decide)
	decided.ValuesSet("systemS3.storageClass", w.class)
	if w.values != nil {
		decided.ValuesSet(planesPath, w.values)
	}
	decided.KubeStateSet(w.objects())
	decided.run()
	p := decided.plan()

	kept := withPlan(w.t, onHarness(w.t, secretsConfig(), keepSecrets), p)
	if w.values != nil {
		kept.ValuesSet(planesPath, w.values)
	}
	kept.KubeStateSet(w.objects())
	kept.run()
	w.values = nil
	require.NoError(w.t, json.Unmarshal([]byte(kept.ValuesGet(planesPath).Raw), &w.values))

	marked := withPlan(w.t, onHarness(w.t, rolesConfig(), retirePlanes), p)
	marked.KubeStateSet(w.objects())
	marked.run()
	patched = marked.operations()
	slices.Sort(patched)
	w.apply(p, kept)
	return told(p), patched
}

// apply prints what the chart prints; the objects of a plane that retires have got the hook's mark.
func (w *town) apply(p plan.Plan, secrets running) {
	w.t.Helper()
	for _, plane := range p.Planes {
		there := w.planes[plane.ID]
		switch {
		case plane.Frozen != "":
		case plane.Role == plan.RoleRetiring && there != nil:
			there.role = string(plan.RoleRetiring)
		case plane.Role != plan.RoleRetiring:
			v, err := parsePlaneValues(secrets.ValuesGet(planesPath + "." + plane.ID))
			require.NoError(w.t, err)
			if there != nil {
				require.Equal(w.t, there.secrets, v, "the secrets of plane %s changed", plane.ID)
			}
			w.planes[plane.ID] = &printed{class: plane.StorageClass, replicas: plane.Replicas, role: string(plane.Role), secrets: v, set: true}
		}
	}
}

func told(p plan.Plan) string {
	parts := []string{"s3 -> " + p.Active}
	for _, plane := range p.Planes {
		part := fmt.Sprintf("%s %s on %s", plane.ID, plane.Role, plane.StorageClass)
		if plane.Frozen != "" {
			part += " frozen"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

const (
	alone    = "s3 -> a, a active on local"
	beside   = "s3 -> a, a active on local, b target on fast"
	switched = "s3 -> b, a retiring on local, b active on fast"
	aborting = "s3 -> a, a active on local, b retiring on fast"
	arrived  = "s3 -> b, b active on fast"
)

// expect runs the hooks: the planes are cast so, and these planes' objects are marked as retiring.
func (w *town) expect(cast string, marked ...string) {
	w.t.Helper()
	wanted := []string{}
	for _, id := range marked {
		wanted = append(wanted, "MergePatch Secret/garage-"+id, "MergePatch StatefulSet/garage-"+id)
	}
	found, patched := w.pass()
	require.Equal(w.t, cast, found)
	require.Equal(w.t, wanted, patched)
}

// moves brings the town to where the controller copies.
func (w *town) moves() {
	w.t.Helper()
	w.expect(alone)
	w.class = "fast"
	w.expect(beside)
	w.phase(plan.PhasePreparing)
	w.expect(beside)
	w.serves("b")
	w.phase(plan.PhaseCopying)
	w.expect(beside)
}

func TestTheStoreMovesToAnotherClass(t *testing.T) {
	w := settled(t)
	w.moves()
	require.NotEqual(t, w.planes["a"].secrets, w.planes["b"].secrets, "each plane has secrets of its own")
	for _, p := range []plan.Phase{plan.PhaseVerifying, plan.PhaseHolding, plan.PhaseFencing} {
		w.phase(p)
		w.expect(beside)
	}
	w.phase(plan.PhaseSwitched)
	w.expect(switched, "a")
	w.expect(switched) // marked once
	w.phase(plan.PhaseRetiring)
	w.planes["a"].set = false // the controller has begun to delete it
	w.expect(switched)
	require.Contains(t, w.values, "a", "its secrets are known as long as its Secret is there")
	delete(w.planes, "a")
	w.expect(arrived)
	require.NotContains(t, w.values, "a")
	w.state.Migration = nil
	w.expect(arrived)
}

func TestAMoveIsCalledBack(t *testing.T) {
	w := settled(t)
	w.moves()
	w.class = "local"
	w.expect(aborting, "b")
	w.class = "fast" // whoever changes his mind again waits until it is gone
	w.expect(aborting)
	w.class = "local"
	delete(w.planes, "b")
	w.expect(alone)
	w.state.Migration = nil
	w.expect(alone)
}

func TestTheFenceWinsOverACallBack(t *testing.T) {
	w := settled(t)
	w.moves()
	secrets := w.planes["b"].secrets
	w.class = "local"
	w.expect(aborting, "b")
	w.phase(plan.PhaseFencing) // was persisted before the controller saw the plan
	w.expect(beside)
	require.Equal(t, secrets, w.planes["b"].secrets)
	require.Equal(t, "target", w.planes["b"].role, "the chart prints it again")
}

func TestTheControllersWordIsLost(t *testing.T) {
	cases := map[string]struct {
		reason string
		before func(*town)
		want   string
	}{
		"while it copies": {
			reason: "the target stays one: whether it may be given up nobody knows",
			before: func(w *town) { w.class = "local" }, want: beside,
		},
		"after the switch": {
			reason: "roles are on the objects",
			before: func(w *town) { w.phase(plan.PhaseSwitched); w.expect(switched, "a") }, want: switched,
		},
		"after it was called back": {
			reason: "what goes is not taken for the store",
			before: func(w *town) { w.class = "local"; w.expect(aborting, "b") }, want: aborting,
		},
		"after the switch, when little is left": {
			reason: "its Secret tells what it was",
			before: func(w *town) { w.phase(plan.PhaseRetiring); w.expect(switched, "a"); w.planes["a"].set = false }, want: switched,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := settled(t)
			w.moves()
			c.before(w)
			w.told, w.state = false, plan.State{}
			got, patched := w.pass()
			require.Equal(t, c.want, got, c.reason)
			require.Empty(t, patched)
		})
	}
}

// Disabled in the middle the module leaves the objects of both planes and the controller's word, and forgets its values.
func TestAMoveOutlivesTheModule(t *testing.T) {
	for cast, before := range map[string]func(*town){
		beside:   func(*town) {},
		switched: func(w *town) { w.phase(plan.PhaseSwitched); w.expect(switched, "a") },
		aborting: func(w *town) { w.class = "local"; w.expect(aborting, "b") },
	} {
		t.Run(cast, func(t *testing.T) {
			w := settled(t)
			w.moves()
			before(w)
			w.values = nil
			w.expect(cast)
			require.Len(t, w.values, 2, "the secrets of both are read back")
		})
	}
}

func TestRolesThatMakeNoSense(t *testing.T) {
	for role, says := range map[string]string{"leader": roleFact, "active": "2 planes (a, b) call themselves the active one", "target": ""} {
		t.Run(role, func(t *testing.T) {
			w := settled(t)
			w.moves()
			w.planes["b"].role, w.state.Migration = role, nil
			r := onHarness(t, planConfig(), decide)
			r.ValuesSet("systemS3.storageClass", "fast")
			r.KubeStateSet(w.objects())
			r.run()
			require.Equal(t, says == "", r.plan().Storage.OK)
			require.Contains(t, r.plan().Storage.Message, says)
		})
	}
}

// A plane that goes needs none of what its objects told.
func TestWhatIsLeftOfARetiringPlaneHoldsNothingUp(t *testing.T) {
	w := settled(t)
	w.moves()
	w.phase(plan.PhaseRetiring)
	w.expect(switched, "a")
	w.values, w.told = nil, false // what it is stands on its objects only
	objects := strings.Replace(w.objects(), "seed:", "nothing:", 1)
	for _, broken := range []string{strings.Replace(w.objects(), classFact+": local, ", "", 2), objects} {
		r := onHarness(t, planConfig(), decide)
		r.ValuesSet("systemS3.storageClass", "fast")
		r.KubeStateSet(broken)
		r.run()
		require.True(t, r.plan().Storage.OK, r.plan().Storage.Message)
	}
	for _, left := range []string{claim(0, "10Gi", "Bound"), ""} {
		kept := withPlan(t, onHarness(t, secretsConfig(), keepSecrets), plan.Plan{Planes: []plan.Plane{retiringPlane(t, w)}, Active: "a"})
		kept.KubeStateSet(left)
		kept.RunHook()
		require.NoError(t, kept.HookError())
		require.Equal(t, "{}", kept.ValuesGet(planesPath).Raw, "no secrets are made for it")
	}
}

func retiringPlane(t *testing.T, w *town) plan.Plane {
	t.Helper()
	r := onHarness(t, planConfig(), decide)
	r.ValuesSet("systemS3.storageClass", "fast")
	r.KubeStateSet(w.objects())
	r.run()
	require.Equal(t, plan.RoleRetiring, r.plan().Planes[0].Role)
	return r.plan().Planes[0]
}

// Prometheus' Secret carries the label of the plane and is none of the store's.
func TestOtherSecretsOfAPlaneAreNoneOfItsSecrets(t *testing.T) {
	v := newValues(t)
	others := strings.Replace(planeSecret(t, newValues(t), "seed"), "name: garage-a", "name: garage-a-metrics", 1)
	r := onHarness(t, planConfig(), decide)
	r.KubeStateSet(state(threeMasters(), defaultClass(), statefulSet("10Gi", factsOf(3)), planeSecret(t, v), others))
	r.run()
	require.True(t, r.plan().Storage.OK, r.plan().Storage.Message)
	alone := onHarness(t, planConfig(), decide)
	alone.KubeStateSet(state(threeMasters(), defaultClass(), others))
	alone.run()
	require.Empty(t, alone.plan().Planes, "it is nothing of a plane")
}

// A plane that goes neither grows nor gets its StatefulSet back.
func TestARetiringPlaneIsLeftToTheController(t *testing.T) {
	p := planned("")
	p.Planes[0].Role = plan.RoleRetiring
	grown := withPlan(t, onHarness(t, claimsConfig(), growClaims), p)
	grown.KubeStateSet(state(defaultClass(), claim(0, "10Gi", "Bound"), stateMap(t, 10)))
	grown.run()
	require.Empty(t, grown.operations())
	replaced := withPlan(t, onHarness(t, statefulSetsConfig(), replaceStatefulSets), p)
	replaced.KubeStateSet(statefulSet("10Gi", factsOf(3)))
	replaced.run()
	require.Empty(t, replaced.operations())
}
