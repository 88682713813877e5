package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/plan"
)

func TestPlanWaitsForTheFirstBucket(t *testing.T) {
	r := onHarness(t, planConfig(), decide)
	r.KubeStateSet(state(threeMasters(), defaultClass()))
	r.run()
	require.Equal(t, plan.ReasonWaitingForFirstBucket, r.plan().Storage.Reason)
	require.Equal(t, "[]", r.ValuesGet(planPath+".planes").Raw)
}

func TestPlanOfANewStore(t *testing.T) {
	cases := map[string]struct {
		reason   string
		objects  string
		settings map[string]any
		want     plan.Plane
	}{
		"three masters": {
			reason:  "snapshots become the cluster of the planner",
			objects: state(threeMasters(), defaultClass(), bucket("one", "10Gi")),
			want:    plan.Plane{Replicas: 3, Tier: plan.TierMasters, StorageClass: "local", VolumeSize: "15Gi"},
		},
		"role nodes": {
			reason:  "labels of nodes are read",
			objects: state(threeMasters(), node("s", plan.SystemNodeLabel), node("w"), defaultClass(), bucket("one", "1Gi")),
			want:    plan.Plane{Replicas: 3, Tier: plan.TierSystem, StorageClass: "local", VolumeSize: "10Gi"},
		},
		"the module's setting": {
			reason:   "highAvailability is read",
			objects:  state(threeMasters(), defaultClass(), bucket("one", "1Gi")),
			settings: map[string]any{"systemS3.highAvailability": false},
			want:     plan.Plane{Replicas: 1, Tier: plan.TierMasters, StorageClass: "local", VolumeSize: "10Gi"},
		},
		"the platform's setting": {
			reason:   "global.highAvailability is read",
			objects:  state(threeMasters(), defaultClass(), bucket("one", "1Gi")),
			settings: map[string]any{"global.highAvailability": false},
			want:     plan.Plane{Replicas: 1, Tier: plan.TierMasters, StorageClass: "local", VolumeSize: "10Gi"},
		},
		"sizes of every form": {
			reason:  "an integer and a quantity add up",
			objects: state(threeMasters(), defaultClass(), bucket("one", "10737418240"), bucket("two", "10Gi")),
			want:    plan.Plane{Replicas: 3, Tier: plan.TierMasters, StorageClass: "local", VolumeSize: "30Gi"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := onHarness(t, planConfig(), decide)
			for path, value := range c.settings {
				r.ValuesSet(path, value)
			}
			r.KubeStateSet(c.objects)
			r.run()
			p := r.plan()
			require.Len(t, p.Planes, 1, p.Storage.Message)
			got := p.Planes[0]
			require.Equal(t, c.want, plan.Plane{Replicas: got.Replicas, Tier: got.Tier, StorageClass: got.StorageClass, VolumeSize: got.VolumeSize}, c.reason)
		})
	}
}

func TestPlanReadsTheClass(t *testing.T) {
	r := onHarness(t, planConfig(), decide)
	r.ValuesSet("systemS3.storageClass", "gone")
	r.KubeStateSet(state(threeMasters(), defaultClass(), bucket("one", "1Gi")))
	r.run()
	require.Equal(t, plan.ReasonNoStorageClass, r.plan().Storage.Reason)
	require.Contains(t, r.plan().Storage.Message, "gone")
}

func TestPlanRemembersTheStore(t *testing.T) {
	v := newValues(t)
	cases := map[string]struct {
		reason  string
		objects string
		size    string
	}{
		"a StatefulSet scaled to zero": {
			reason:  "replicas are read off the annotations: the leaver scales to zero",
			objects: state(statefulSet("20Gi", factsOf(3)), planeSecret(t, v)), size: "20Gi",
		},
		"the StatefulSet is away": {
			reason:  "between orphan deletion and return the Secret and the claims remember",
			objects: state(planeSecret(t, v), claim(0, "25Gi", "Bound")), size: "25Gi",
		},
		"a claim grown by hand": {
			reason:  "sizes never fall",
			objects: state(statefulSet("20Gi", factsOf(3)), planeSecret(t, v), claim(0, "40Gi", "Bound")), size: "40Gi",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := onHarness(t, planConfig(), decide)
			r.KubeStateSet(state(node("m-0", plan.MasterNodeLabel), defaultClass(), c.objects))
			r.ValuesSet("global.discovery.clusterControlPlaneIsHighlyAvailable", false)
			r.run()
			p := r.plan()
			require.True(t, p.Storage.OK, p.Storage.Message)
			require.Equal(t, 3, p.Planes[0].Replicas, c.reason)
			require.Equal(t, c.size, p.Planes[0].VolumeSize, c.reason)
		})
	}
}

func TestPlanSeesHowVolumesAre(t *testing.T) {
	const failed = "conditions: [{type: NodeResizeError, status: 'True', message: \"no space\\n  left\"}], "
	v := newValues(t)
	cases := map[string]struct {
		reason  string
		objects []string
		size    string
		verdict string
		says    string
	}{
		"all is well": {
			reason: "nothing to do", objects: []string{claim(0, "10Gi", "Bound"), stateMap(t, 10)},
			size: "10Gi", verdict: plan.ReasonEnough, says: "10Gi",
		},
		"full": {
			reason: "D3: the controller's measurement", objects: []string{claim(0, "10Gi", "Bound"), stateMap(t, 10, 0)},
			size: "15Gi", verdict: plan.ReasonExhausted, says: "data-garage-a-0 (10Gi)",
		},
		"full before it grew": {
			reason: "D3: the old measurement asks for no second step", objects: []string{claim(0, "15Gi", "Bound"), stateMap(t, 10, 0)},
			size: "15Gi", verdict: plan.ReasonExhausted, says: "data-garage-a-0 (15Gi)",
		},
		"growing": {
			reason: "the claim has less than it asks for", objects: []string{resizing(0, "10Gi", "15Gi", ""), stateMap(t, 10)},
			size: "15Gi", verdict: plan.ReasonGrowing, says: "data-garage-a-0.",
		},
		"waiting for the file system": {
			reason: "what it waits for", objects: []string{resizing(0, "10Gi", "15Gi", "conditions: [{type: FileSystemResizePending, status: 'True'}], ")},
			size: "15Gi", verdict: plan.ReasonGrowing, says: "file system grows as soon as its replica runs",
		},
		"failed": {
			reason: "the storage's own words, on one line", objects: []string{resizing(0, "10Gi", "15Gi", failed)},
			size: "15Gi", verdict: plan.ReasonExpansionFailed, says: "data-garage-a-0: no space left.",
		},
		"cannot be done": {
			reason: "newer clusters say it in another place", objects: []string{resizing(0, "10Gi", "15Gi", "allocatedResourceStatuses: {storage: ControllerResizeInfeasible}, ")},
			size: "15Gi", verdict: plan.ReasonExpansionFailed, says: "ControllerResizeInfeasible",
		},
		"an unreadable state": {
			reason:  "what cannot be read is not full",
			objects: []string{claim(0, "10Gi", "Bound"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: data-plane, namespace: d8-system-s3}\ndata: {state.json: '{'}"},
			size:    "10Gi", verdict: plan.ReasonEnough, says: "10Gi",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := onHarness(t, planConfig(), decide)
			r.KubeStateSet(state(append(c.objects, threeMasters(), defaultClass(), statefulSet("10Gi", factsOf(3)), planeSecret(t, v))...))
			r.run()
			require.Equal(t, c.size, r.plan().Planes[0].VolumeSize, c.reason)
			require.Equal(t, c.verdict, r.plan().Capacity.Reason, c.reason)
			require.Contains(t, r.plan().Capacity.Message, c.says, c.reason)
		})
	}
}

func TestPlanStopsWhereAFactCannotBeRead(t *testing.T) {
	v := newValues(t)
	cases := map[string]struct {
		reason  string
		objects string
		says    string
		planes  int
	}{
		"an annotation is missing": {
			reason:  "the StatefulSet no longer tells its class",
			objects: state(statefulSet("20Gi", `{}`), planeSecret(t, v)), says: classFact, planes: 0,
		},
		"an annotation is no number": {
			reason:  "the replicas cannot be read",
			objects: state(statefulSet("20Gi", `{`+classFact+`: local, `+replicasFact+`: "many"}`), planeSecret(t, v)), says: replicasFact, planes: 0,
		},
		"the Secret is gone": {
			reason:  "the volumes could not be read with new secrets",
			objects: state(statefulSet("20Gi", factsOf(3)), claim(0, "20Gi", "Bound")), says: "Secret garage-a: it is gone", planes: 1,
		},
		"a key is missing": {
			reason:  "which one is said",
			objects: state(statefulSet("20Gi", factsOf(3)), planeSecret(t, v, "seed")), says: "key seed is missing", planes: 1,
		},
		"a node key is missing": {
			reason:  "which one is said",
			objects: state(statefulSet("20Gi", factsOf(3)), planeSecret(t, v, "node-key-1")), says: "key node-key-1 is missing", planes: 1,
		},
		"only volumes are left": {
			reason:  "nothing is planned over them",
			objects: state(claim(1, "20Gi", "Bound"), claim(0, "20Gi", "Bound")), says: "data-garage-a-0, data-garage-a-1", planes: 0,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := onHarness(t, planConfig(), decide)
			r.KubeStateSet(state(threeMasters(), defaultClass(), bucket("one", "1Gi"), c.objects))
			r.run()
			p := r.plan()
			require.Equal(t, plan.ReasonStateUnreadable, p.Storage.Reason)
			require.Contains(t, p.Storage.Message, c.says, c.reason)
			require.Len(t, p.Planes, c.planes)
			for _, plane := range p.Planes {
				require.Equal(t, p.Storage.Message, plane.Frozen)
			}
		})
	}
}

func TestPlanTrustsTheValuesForALostSecret(t *testing.T) {
	r := onHarness(t, planConfig(), decide)
	r.ValuesSet(planesPath, map[string]any{"a": newValues(t)})
	r.KubeStateSet(state(threeMasters(), defaultClass(), statefulSet("20Gi", factsOf(3))))
	r.run()
	require.True(t, r.plan().Storage.OK, "the chart puts the Secret back")
}
