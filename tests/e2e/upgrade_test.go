package e2e

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

// landed is the commit that was landed before this one: what runs at users. Whoever lands a change that users update
// to sets it to the commit landed last.
//
//go:embed testdata/upgrade-from
var landed string

// TestUpgrade runs the module as it was landed last, with data, then updates it to this checkout: nothing is made anew
// and no replica is started anew without need.
func TestUpgrade(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			site.Diagnose(ctx, namespace, systemSpace)
		}
	})
	ctx := t.Context()
	s := &leaving{story: story{ledger: &ledger{}}}
	earlier := checkout(t)
	s.reset(t)
	t.Cleanup(func() { require.NoError(t, platform(context.Background(), "update")) }) // whatever happens, this checkout runs at the end
	require.NoError(t, platform(ctx, "update", "--checkout", earlier))
	s.begins(t)
	before, controller := running(t), controllerImage(t)
	require.Len(t, before, wantedReplicas())

	begun := time.Now()
	require.NoError(t, platform(ctx, "update"))
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the new controller", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		deployment := &appsv1.Deployment{}
		err := site.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.ControllerApp}, deployment)
		if err != nil {
			return false, "", client.IgnoreNotFound(err)
		}
		status, changed := deployment.Status, deployment.Spec.Template.Spec.Containers[0].Image != controller
		rolled := status.ObservedGeneration == deployment.Generation && status.UpdatedReplicas == status.Replicas && status.AvailableReplicas == status.Replicas
		return changed && rolled && status.Replicas > 0, fmt.Sprintf("changed: %t, rolled out: %t", changed, rolled), nil
	}}))
	require.NoError(t, site.AwaitCondition(ctx, storeLimit, storageReady, plan.ReasonReady))
	require.NoError(t, site.AwaitBucket(ctx, mainKey(), moduleLimit))
	require.NoError(t, awaitHealth(ctx))
	t.Logf("updated in %.0f s", time.Since(begun).Seconds())
	s.isSame(t, "the same store, CA, key ring and nodes")
	s.readsBack(t)
	s.writes(t)
	after := running(t) // without the one that is being restarted at the moment, one by one with the changed template
	for pod, was := range before {
		if is, found := after[pod]; found && is.revision == was.revision {
			require.Equal(t, was, is, "%s was started anew though nothing of it changed", pod)
		}
	}
}

// replica is what is known of a Pod of Garage that tells one start from another.
type replica struct {
	uid, revision string
	restarts      int32
}

func running(t *testing.T) map[string]replica {
	t.Helper()
	pods := &corev1.PodList{}
	require.NoError(t, site.Admin.List(t.Context(), pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.GarageApp}))
	found := map[string]replica{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		each := replica{uid: string(pod.UID), revision: pod.Labels[appsv1.StatefulSetRevisionLabel]}
		for _, status := range pod.Status.ContainerStatuses {
			each.restarts += status.RestartCount
		}
		found[pod.Name] = each
	}
	return found
}

func controllerImage(t *testing.T) string {
	t.Helper()
	deployment := &appsv1.Deployment{}
	require.NoError(t, site.Admin.Get(t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: names.ControllerApp}, deployment))
	return deployment.Spec.Template.Spec.Containers[0].Image
}

// checkout unpacks the commit that was landed before into a folder that lives as long as the test.
func checkout(t *testing.T) string {
	t.Helper()
	commit := strings.TrimSpace(landed)
	root := filepath.Join(site.Builds.Source(), "..", "..")
	git := func(args ...string) error {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	require.NoError(t, git("cat-file", "-e", commit+"^{commit}"),
		"the commit %s that this test updates from is not in the history of the checkout: get all of it (git fetch --unshallow)", commit)
	into, archive := t.TempDir(), filepath.Join(t.TempDir(), "earlier.tar")
	require.NoError(t, git("archive", "--format=tar", "--output", archive, commit))
	out, err := exec.CommandContext(t.Context(), "tar", "-xf", archive, "-C", into).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Remove(archive))
	return into
}
