//go:build placement

package e2e

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

// TestEveryPlacement takes each tier and each kind of StorageClass, with one replica: it is about the place and the size.
func TestEveryPlacement(t *testing.T) {
	s := &placing{story{ledger: &ledger{}}}
	tell(t,
		chapter{name: "one master, one replica", play: s.oneMaster},
		chapter{name: "a system node draws the store off the masters", play: s.systemTier},
		chapter{name: "one node with the role draws all three replicas and no other node is taken", play: s.ownTier},
		chapter{name: "immediate binding is said", play: s.immediate},
		chapter{name: "a class without expansion: full, refusing, deleting, going on", play: s.cannotGrow},
	)
}

// begins makes an empty store with the settings and a bucket in it.
func (s *placing) begins(t *testing.T, settings map[string]any) {
	t.Helper()
	s.reset(t)
	if settings != nil {
		settings["logLevel"] = "Debug" // what the chart prints of it shows that the platform has taken the settings over
		require.NoError(t, site.Configure(t.Context(), true, settings))
		require.NoError(t, site.Await(t.Context(), stage.Wish{What: "the settings to be in force", Limit: moduleLimit, Look: inForce}))
	}
	require.NoError(t, site.Bucket(t.Context(), mainKey(), "1Gi"))
}

func inForce(ctx context.Context) (bool, string, error) {
	controller := &appsv1.Deployment{}
	if err := site.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.ControllerApp}, controller); err != nil {
		return false, "", err
	}
	for _, variable := range controller.Spec.Template.Spec.Containers[0].Env {
		if variable.Name == "LOG_LEVEL" {
			return variable.Value == "debug", "LOG_LEVEL is " + variable.Value, nil
		}
	}
	return false, "there is no LOG_LEVEL", nil
}

func one() map[string]any { return map[string]any{"highAvailability": false} }

func (s *placing) oneMaster(t *testing.T) {
	cast(t, "", master, "")
	s.begins(t, nil)
	awaitText(t, placementReady, "True", plan.ReasonPlaced, "One replica on nodes with the label node-role.kubernetes.io/control-plane.")
	require.NoError(t, site.AwaitBucket(t.Context(), mainKey(), storeLimit))
	require.Equal(t, []string{"node-2"}, taken(t))
}

func (s *placing) systemTier(t *testing.T) {
	cast(t, master, master, plan.SystemNodeLabel)
	s.begins(t, one())
	awaitText(t, placementReady, "True", plan.ReasonPlaced, "One replica on nodes with the label node-role.deckhouse.io/system.")
	require.NoError(t, site.AwaitBucket(t.Context(), mainKey(), storeLimit))
	require.Equal(t, []string{"node-3"}, taken(t))
}

// ownTier: existence decides, not whether there are enough (F1).
func (s *placing) ownTier(t *testing.T) {
	cast(t, master+" "+plan.SystemS3NodeLabel, master, master+" "+plan.SystemNodeLabel)
	s.begins(t, nil)
	awaitText(t, placementReady, "False", plan.ReasonPlacementBlocked,
		"Three replicas, each on a node of its own, need 3 nodes with the label node-role.deckhouse.io/system-s3, and the cluster has 1 (node-1). "+
			"Ways out: give the label node-role.deckhouse.io/system-s3 to 3 nodes, or set highAvailability: false in ModuleConfig system-s3.")
	require.NoError(t, site.AwaitCondition(t.Context(), storeLimit, storageReady, plan.ReasonLayoutFailed))
	require.Equal(t, []string{"node-1"}, taken(t), "the two others stay Pending")
}

// immediate: the replica runs where its volume landed, and people are told (E2).
func (s *placing) immediate(t *testing.T) {
	cast(t, master, master, master)
	settings := one()
	settings["storageClass"] = "immediate"
	s.begins(t, settings)
	awaitText(t, placementReady, "True", plan.ReasonPlaced, "One replica on nodes with the label node-role.kubernetes.io/control-plane. "+
		"StorageClass immediate has volumeBindingMode Immediate, not WaitForFirstConsumer: a replica is tied to wherever its volume landed.")
	require.NoError(t, site.AwaitBucket(t.Context(), mainKey(), storeLimit))
}

// cannotGrow: writes stop before the volume is full, deletes do not, and with room writes go on (D2, D3).
func (s *placing) cannotGrow(t *testing.T) {
	cast(t, master, "", "")
	settings := one()
	settings["storageClass"] = "fixed"
	s.begins(t, settings)
	require.NoError(t, site.AwaitBucket(t.Context(), mainKey(), storeLimit))
	allow(t, "filler", names.ReadSubresource, names.WriteSubresource)
	door, bucket := s.door(t), bucketName(t, mainBucket)
	key, err := patient(door.of("filler", mainBucket, "")).Retrieve(t.Context())
	require.NoError(t, err)
	c := door.s3(static(key))
	awaitPut(t, c, bucket, "before")

	empty := fill(t, 0, 2)
	defer empty()
	awaitText(t, capacityReady, "False", plan.ReasonExpansionNotAllowed,
		"Volumes should be 15Gi and data-garage-a-0 (10Gi) is not, but StorageClass fixed does not allow them to grow while in use: "+
			"allow it with allowVolumeExpansion: true if its storage can do it, or lower the sizes of SystemBuckets and delete objects. "+
			"Uploads are refused with InsufficientStorage before a volume is full; reads and deletes go on.")
	require.Equal(t, "InsufficientStorage", code(put(t.Context(), c, bucket, "refused", []byte("refused"))))
	content, err := get(t.Context(), c, bucket, "before")
	require.NoError(t, err)
	require.Equal(t, "before", string(content))
	_, err = c.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &bucket, Key: aws.String("before")})
	require.NoError(t, err, "deletes go through")
	found, err := claims(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"data-garage-a-0": "10Gi"}, found, "nobody tried to grow it")

	empty()
	awaitPut(t, c, bucket, "after")
	require.NoError(t, site.AwaitCondition(t.Context(), moduleLimit, capacityReady, plan.ReasonEnough))
}

// awaitPut writes an object with its name as soon as the store takes it: the cluster's network may come a moment later.
func awaitPut(t *testing.T, c *s3.Client, bucket, name string) {
	t.Helper()
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "object " + name + " to be written", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		err := put(ctx, c, bucket, name, []byte(name))
		return err == nil, code(err), nil
	}}))
}
