package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func rigidClass() string {
	return "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: local}\nprovisioner: test"
}

func offlineClass() string {
	return "apiVersion: storage.k8s.io/v1\nkind: StorageClass\n" +
		"metadata: {name: local, annotations: {storageclass.deckhouse.io/volume-expansion-mode: offline}}\nprovisioner: test\nallowVolumeExpansion: true"
}

// The plan of these tests asks for 15Gi.
func TestClaimsGrow(t *testing.T) {
	cases := map[string]struct {
		reason  string
		objects string
		frozen  string
		want    []string
	}{
		"too small": {
			reason: "one after the other", objects: state(defaultClass(), claim(0, "15Gi", "Bound"), claim(1, "10Gi", "Bound"), claim(2, "10Gi", "Bound"), stateMap(t, 10)),
			want: []string{"MergePatch PersistentVolumeClaim/data-garage-a-1"},
		},
		"one is growing": {
			reason: "the next waits for it", objects: state(defaultClass(), resizing(0, "10Gi", "15Gi", ""), claim(1, "10Gi", "Bound"), stateMap(t, 10)), want: []string{},
		},
		"one waits for its file system": {
			reason:  "growth is followed to its end",
			objects: state(defaultClass(), resizing(0, "10Gi", "15Gi", "conditions: [{type: FileSystemResizePending, status: 'True'}], "), claim(1, "10Gi", "Bound"), stateMap(t, 10)),
			want:    []string{},
		},
		"one cannot grow while its replica is away": {
			reason: "a lost node holds up no other volume", objects: state(defaultClass(), resizing(0, "10Gi", "15Gi", ""), claim(1, "10Gi", "Bound")),
			want: []string{"MergePatch PersistentVolumeClaim/data-garage-a-1"},
		},
		"one failed": {
			reason:  "a storage without room holds up no other volume",
			objects: state(defaultClass(), resizing(0, "10Gi", "15Gi", "conditions: [{type: ControllerResizeError, status: 'True', message: no room}], "), claim(1, "10Gi", "Bound"), stateMap(t, 10)),
			want:    []string{"MergePatch PersistentVolumeClaim/data-garage-a-1"},
		},
		"one is being deleted": {
			reason:  "somebody wants it gone",
			objects: state(defaultClass(), strings.Replace(claim(0, "10Gi", "Bound"), "metadata:\n", "metadata:\n  deletionTimestamp: \"2026-01-01T00:00:00Z\"\n  finalizers: [kubernetes.io/pvc-protection]\n", 1)),
			want:    []string{},
		},
		"larger": {reason: "nothing shrinks", objects: state(defaultClass(), claim(0, "50Gi", "Bound")), want: []string{}},
		"not bound": {
			reason: "a claim cannot be changed before it is bound", objects: state(defaultClass(), claim(0, "10Gi", "Pending")), want: []string{},
		},
		"a class that cannot":            {reason: "D2", objects: state(rigidClass(), claim(0, "10Gi", "Bound")), want: []string{}},
		"a class that must stop the Pod": {reason: "growth must not stop a replica", objects: state(offlineClass(), claim(0, "10Gi", "Bound")), want: []string{}},
		"a class that is gone":           {reason: "nobody can grow it", objects: claim(0, "10Gi", "Bound"), want: []string{}},
		"a frozen plane":                 {reason: "left as it is", objects: state(defaultClass(), claim(0, "10Gi", "Bound")), frozen: "lost", want: []string{}},
		"nothing there":                  {reason: "the store is about to be made", objects: defaultClass(), want: []string{}},
		"another plane's claim, unplanned": {
			reason:  "what the plan does not know is left alone",
			objects: state(defaultClass(), "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data-garage-z-0, namespace: d8-system-s3, labels: {system-s3.deckhouse.io/plane: z}}\nspec: {storageClassName: local, resources: {requests: {storage: 1Gi}}}\nstatus: {phase: Bound}"),
			want:    []string{},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := withPlan(t, onHarness(t, claimsConfig(), growClaims), planned(c.frozen))
			r.KubeStateSet(c.objects)
			r.run()
			require.Equal(t, c.want, r.operations(), c.reason)
			for _, o := range r.PatchedOperations() {
				require.Equal(t, storageRequest("15Gi"), o.MergePatch)
			}
		})
	}
}

func TestClaimsWaitForThePlan(t *testing.T) {
	r := onHarness(t, claimsConfig(), growClaims)
	r.KubeStateSet(state(defaultClass(), claim(0, "10Gi", "Bound")))
	r.run()
	require.Empty(t, r.operations(), "the first synchronization comes before the plan")
}

func TestStatefulSetIsReplacedForAnotherSize(t *testing.T) {
	cases := map[string]struct {
		reason  string
		objects string
		frozen  string
		want    []string
	}{
		"another size": {
			reason: "the claim template is immutable", objects: statefulSet("10Gi", factsOf(3)),
			want: []string{"DeleteNonCascading StatefulSet/garage-a"},
		},
		"the same size":                {reason: "nothing to do", objects: statefulSet("15Gi", factsOf(3)), want: []string{}},
		"the same size, written in Mi": {reason: "sizes are compared, not texts", objects: statefulSet("15360Mi", factsOf(3)), want: []string{}},
		"a frozen plane":               {reason: "the chart would not put it back", objects: statefulSet("10Gi", factsOf(3)), frozen: "lost", want: []string{}},
		"no StatefulSet":               {reason: "deleting an absent object fails the hook", objects: "", want: []string{}},
		"a StatefulSet that goes already": {
			reason:  "deleted once",
			objects: strings.Replace(statefulSet("10Gi", factsOf(3)), "metadata:\n", "metadata:\n  deletionTimestamp: \"2026-01-01T00:00:00Z\"\n", 1), want: []string{},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := withPlan(t, onHarness(t, statefulSetsConfig(), replaceStatefulSets), planned(c.frozen))
			r.KubeStateSet(c.objects)
			r.run()
			require.Equal(t, c.want, r.operations(), c.reason)
		})
	}
}
