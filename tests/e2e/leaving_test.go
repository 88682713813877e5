package e2e

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

const (
	leaverName     = "system-s3-leave"
	systemSpace    = "d8-system"
	leavingObject  = "before leaving"
	leavingAccount = "leaving"
)

// TestLeaving plays the module's leaving and coming back, from whatever state, and ends with the module enabled. The
// last chapters delete the store with all its data.
func TestLeaving(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			site.Diagnose(ctx, namespace, systemSpace)
		}
	})
	s := &leaving{story: story{ledger: &ledger{}}}
	chapters := []struct {
		name string
		play func(*testing.T)
		rest bool // later chapters rest on it
	}{
		{name: "a store with an object", play: s.begins, rest: true},
		{name: "who may touch SystemBuckets", play: s.limitsRights},
		{name: "a namespace loses its label", play: s.losesLabel},
		{name: "disabling without confirmation is refused", play: s.refusesToLeave, rest: true},
		{name: "disabling stops the store and keeps it", play: s.leaves, rest: true},
		{name: "a SystemBucket can be deleted without the module", play: s.deletesWhileAway},
		{name: "enabling brings it back", play: s.returns, rest: true},
		{name: "disabled while Deckhouse is down", play: s.leavesBehindItsBack, rest: true},
		{name: "the leaver is killed again and again", play: s.survivesKills, rest: true},
		{name: "enabled again while it leaves", play: s.changesItsMind, rest: true},
		{name: "disabled while a bucket is being deleted", play: s.leavesInADeletion, rest: true},
		{name: "the data of what was deleted meanwhile is deleted", play: s.deletesWhatIsLeft},
		{name: "enabled with other settings, and edited by hand meanwhile", play: s.returnsElsewhere, rest: true},
		{name: "an administrator deletes the disabled store", play: s.isDeleted, rest: true},
		{name: "enabled later it starts empty and says so", play: s.startsEmpty, rest: true},
	}
	for _, c := range chapters {
		if !t.Run(c.name, c.play) && c.rest {
			t.Fatalf("the rest needs %q", c.name)
		}
	}
}

// leaving is what the chapters share.
type leaving struct {
	story

	content []byte
	kept    map[string]string // what must never change, by name
	lost    bool              // an earlier run has deleted the store of this very SystemBucket
	after   func(*testing.T)  // what a moment has to check after the return
	renewed string            // what a growth or an update makes anew, by name: the one thing of kept that may change
	orphans map[string]string // ids in Garage of buckets whose SystemBuckets were deleted while nobody looked, by name
}

// begins makes a store with an object in it, whatever was there before.
func (s *leaving) begins(t *testing.T) {
	ctx := t.Context()
	require.NoError(t, site.Namespace(ctx, namespace))
	require.NoError(t, site.Configure(ctx, true, nil))
	require.NoError(t, site.Await(ctx, stage.Wish{What: "SystemBuckets to be accepted", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		err := site.Bucket(ctx, mainKey(), "1Gi")
		return err == nil, "", err
	}}))
	// The store first: what the SystemBucket says may be from before the module was disabled.
	require.NoError(t, site.AwaitCondition(ctx, storeLimit, storageReady, plan.ReasonReady))
	require.NoError(t, site.AwaitBucket(ctx, mainKey(), moduleLimit))
	allow(t, leavingAccount, names.ReadSubresource, names.WriteSubresource)
	s.content = bytes.Repeat([]byte("what must not be lost\n"), 100_000) // 2 MB: blocks, not only metadata
	s.writes(t)
	bucket, _, err := site.ReadBucket(ctx, mainKey())
	require.NoError(t, err)
	s.lost = meta.FindStatusCondition(bucket.Status.Conditions, v1alpha1.ConditionDataLost) != nil
	s.kept = keptFacts(t)
}

// awaitServices waits until the chart is there: what the conditions say may be from before.
func awaitServices(t *testing.T) {
	t.Helper()
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "the Services", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		services := &corev1.ServiceList{}
		err := site.Admin.List(ctx, services, client.InNamespace(names.Namespace))
		found := 0
		for i := range services.Items {
			if name := services.Items[i].Name; name == names.GatewayService || name == names.STSService {
				found++
			}
		}
		return found == 2, "", err
	}}))
}

// writes puts the object, as soon as the store takes it.
func (s *leaving) writes(t *testing.T) {
	t.Helper()
	awaitServices(t)
	bucket := bucketName(t, mainBucket)
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "an object to be written", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		d := s.door(t)
		err := put(ctx, d.s3(d.of(leavingAccount, mainBucket, "")), bucket, leavingObject, s.content)
		return err == nil, "", err
	}}))
}

// readsBack gets the object and compares it byte for byte.
func (s *leaving) readsBack(t *testing.T) {
	t.Helper()
	awaitServices(t)
	bucket := bucketName(t, mainBucket)
	var content []byte
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "the object to be read", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		d := s.door(t)
		var err error
		content, err = get(ctx, d.s3(d.of(leavingAccount, mainBucket, "")), bucket, leavingObject)
		return err == nil, "", err
	}}))
	require.True(t, bytes.Equal(s.content, content), "not the bytes that were written")
}

func (s *leaving) refusesToLeave(t *testing.T) {
	err := site.Configure(t.Context(), false, nil)
	require.ErrorContains(t, err, "kubectl get sb -A")
	require.ErrorContains(t, err, "modules.deckhouse.io/allow-disabling")
	s.readsBack(t)
}

func (s *leaving) leaves(t *testing.T) {
	foreign := &v1alpha1.SystemBucket{}
	require.NoError(t, site.Admin.Get(t.Context(), mainKey(), foreign))
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["example.com/other","`+names.Finalizer+`"]}}`))
	require.NoError(t, site.Admin.Patch(t.Context(), foreign, patch))
	s.fillsSpare(t)
	require.NoError(t, site.Disable(t.Context()))
	s.hasLeft(t)
	require.NoError(t, site.Admin.Get(t.Context(), mainKey(), foreign))
	require.Equal(t, []string{"example.com/other"}, foreign.Finalizers, "ours only")
	none := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	require.NoError(t, site.Admin.Patch(t.Context(), foreign, none))
	// Once more is no harm.
	require.NoError(t, site.Disable(t.Context()))
	s.hasLeft(t)
}

// isSame checks that what must never change has not.
func (s *leaving) isSame(t *testing.T, what string) {
	t.Helper()
	now := keptFacts(t)
	if s.renewed != "" {
		delete(now, s.renewed)
		delete(s.kept, s.renewed)
	}
	require.Equal(t, s.kept, now, what)
}

// hasLeft waits until leaving has ended and checks everything that it promises.
func (s *leaving) hasLeft(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, site.Await(ctx, stage.Wish{What: "leaving to end", Limit: moduleLimit, Look: leavingEnded}))
	s.isSame(t, "what the store is made of")
	labelled, err := labelledObjects(ctx)
	require.NoError(t, err)
	require.Empty(t, labelled, "objects with the platform's label")
	pods := &corev1.PodList{}
	require.NoError(t, site.Admin.List(ctx, pods, client.InNamespace(names.Namespace)))
	require.Empty(t, pods.Items)
	conditions, err := site.Conditions(ctx)
	require.NoError(t, err)
	for _, c := range conditions {
		require.NotContains(t, []string{storageReady, "PlacementReady", "CapacityReady", "MigrationReady"}, c.Type)
	}
	buckets := &v1alpha1.SystemBucketList{}
	require.NoError(t, site.Admin.List(ctx, buckets))
	for i := range buckets.Items {
		require.NotContains(t, buckets.Items[i].Finalizers, names.Finalizer)
		ready := meta.FindStatusCondition(buckets.Items[i].Status.Conditions, v1alpha1.ConditionReady)
		require.NotNil(t, ready)
		require.Equal(t, v1alpha1.ReasonWaitingForStorage, ready.Reason, "nobody believes that a stopped store serves")
		require.Contains(t, ready.Message, "is disabled")
	}
	connection := client.ObjectKey{Namespace: namespace, Name: names.ConnectionConfigMap(mainBucket)}
	require.NoError(t, site.Admin.Get(ctx, connection, &corev1.ConfigMap{}), "H3: it stays beside its SystemBucket")
}

// leavingEnded has a look whether the leaver has come and gone and the chart with it.
func leavingEnded(ctx context.Context) (bool, string, error) {
	for name, look := range map[string]func(context.Context) (bool, string, error){
		"the plan":       absent(client.ObjectKey{Namespace: names.Namespace, Name: names.PlanConfigMap}, &corev1.ConfigMap{}),
		"the controller": absent(client.ObjectKey{Namespace: names.Namespace, Name: names.ControllerApp}, &appsv1.Deployment{}),
		"the leaver":     absent(client.ObjectKey{Namespace: systemSpace, Name: leaverName}, &appsv1.Deployment{}),
	} {
		gone, _, err := look(ctx)
		if err != nil || !gone {
			return false, name + " is still there", err
		}
	}
	store := &corev1.Namespace{}
	err := site.Admin.Get(ctx, client.ObjectKey{Name: names.Namespace}, store)
	return store.Labels[names.HeritageLabel] == "", "the label is still on the namespace", client.IgnoreNotFound(err)
}

func (s *leaving) returns(t *testing.T) {
	require.NoError(t, site.Configure(t.Context(), true, nil))
	s.hasReturned(t)
}

// hasReturned waits until the module is back and checks that nothing is lost.
func (s *leaving) hasReturned(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, site.AwaitCondition(ctx, storeLimit, storageReady, plan.ReasonReady))
	require.NoError(t, awaitHealth(ctx))
	s.readsBack(t)
	s.isSame(t, "the same store, CA, key ring and nodes")
	require.NoError(t, site.Await(ctx, stage.Wish{What: "labels and finalizers to return", Limit: 2 * shortLimit, Look: func(ctx context.Context) (bool, string, error) {
		bare, err := unlabelledObjects(ctx)
		if err != nil || len(bare) > 0 {
			return false, fmt.Sprintf("without the label: %v", bare), err
		}
		bucket, ready, err := site.ReadBucket(ctx, mainKey())
		if err != nil {
			return false, "", err
		}
		return len(bucket.Finalizers) == 1 && ready.Reason == v1alpha1.ReasonReady, fmt.Sprintf("%v %s", bucket.Finalizers, ready.Message), nil
	}}))
	bucket, _, err := site.ReadBucket(ctx, mainKey())
	require.NoError(t, err)
	lost := meta.FindStatusCondition(bucket.Status.Conditions, v1alpha1.ConditionDataLost)
	require.Equal(t, s.lost, lost != nil, "nothing new is lost")
}
