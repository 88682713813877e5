package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

// rolls changes the template of the replicas while a client writes: the controller restarts one after the other, each
// only after the proof that the others hold everything. Of three it waits for two, which is the first proof and the
// second; the last one is restarted while the story goes on.
func (s *story) rolls(t *testing.T) {
	ctx := t.Context()
	c := allow(t, "writer", names.ReadSubresource, names.WriteSubresource)
	c.Image = s.push(t).program
	c.Args = []string{"-for", rollLoad().String(), "-interval", "200ms", "-patience", "2m", "-size", "65536", "-prefix", "roll/"}
	require.NoError(t, site.Start(ctx, c.Pod()))

	set := &appsv1.StatefulSet{}
	set.Namespace, set.Name = names.Namespace, names.GarageObject(plane)
	change := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"e2e":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	require.NoError(t, site.Deckhouse.Patch(ctx, set, client.RawPatch(types.MergePatchType, []byte(change))))
	require.NoError(t, awaitRoll(ctx))

	ended := site.AwaitEnd(ctx, c.Key(), podLimit)
	log, err := site.Logs(ctx, c.Key(), corev1.PodLogOptions{})
	require.NoError(t, err)
	require.NoError(t, ended, log)
	t.Log(log)
}

// rolled is how many restarted replicas are waited for.
func rolled() int { return max(1, wantedReplicas()-1) }

// rollLoad is how long the client writes: about as long as that takes.
func rollLoad() time.Duration { return time.Duration(rolled()) * 40 * time.Second }

var errTooManyAway = errors.New("more than one replica was away at once")

// awaitRoll waits until enough replicas run the newest template and watches that no two are away at once.
func awaitRoll(ctx context.Context) error {
	fewest := wantedReplicas()
	wish := stage.Wish{What: "the replicas to run the changed template", Limit: storeLimit}
	wish.Look = func(ctx context.Context) (bool, string, error) {
		byNode, err := replicas(ctx)
		if err != nil {
			return false, "", err
		}
		fewest = min(fewest, len(byNode))
		set := &appsv1.StatefulSet{}
		if err := site.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.GarageObject(plane)}, set); err != nil {
			return false, "", fmt.Errorf("read the StatefulSet: %w", err)
		}
		present := 0
		for _, pod := range byNode {
			if pod.Labels[appsv1.ControllerRevisionHashLabelKey] == set.Status.UpdateRevision {
				present++
			}
		}
		return present >= rolled() && set.Status.ObservedGeneration == set.Generation,
			fmt.Sprintf("%d of %d replicas run it", present, wantedReplicas()), nil
	}
	if err := site.Await(ctx, wish); err != nil {
		return err
	}
	if fewest < wantedReplicas()-1 {
		return errTooManyAway
	}
	return nil
}
