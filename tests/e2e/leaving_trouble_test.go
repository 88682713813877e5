package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/sandbox/command"
	"github.com/deckhouse/system-s3/tests/tour/ground"
)

// platform runs a verb of the sandbox on the stand-ins for Deckhouse.
func platform(ctx context.Context, verb string, args ...string) error {
	program := filepath.Join(site.Builds.Source(), "..", "..", "bin", "sandbox")
	if own := os.Getenv("SANDBOX"); own != "" {
		program = own
	}
	return command.Run(ctx, program, append([]string{"platform", verb, "--dir", string(site.Dir)}, args...)...)
}

// leavesBehindItsBack disables the module while nobody looks: what is found later is a release without a module, which
// is taken away without any of the module's hooks.
func (s *leaving) leavesBehindItsBack(t *testing.T) {
	ctx := t.Context()
	require.NoError(t, platform(ctx, "stop-operator"))
	require.NoError(t, site.Disable(ctx))
	s.readsBack(t)
	require.NoError(t, platform(ctx, "start-operator"))
	s.hasLeft(t)
	s.returns(t)
}

// survivesKills kills the leaver in the middle, without a chance to end in order.
func (s *leaving) survivesKills(t *testing.T) {
	ctx := t.Context()
	require.NoError(t, site.Disable(ctx))
	killed := map[string]bool{}
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the leaver to be killed", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		pods := &corev1.PodList{}
		if err := site.Admin.List(ctx, pods, client.InNamespace(systemSpace), client.MatchingLabels{names.AppLabel: leaverName}); err != nil {
			return false, "", err
		}
		for i := range pods.Items {
			if err := killContainers(ctx, &pods.Items[i], killed); err != nil {
				return false, "", err
			}
		}
		ended, _, err := leavingEnded(ctx)
		return len(killed) > 1 || ended, fmt.Sprintf("killed %d times", len(killed)), err
	}}))
	require.NotEmpty(t, killed)
	s.hasLeft(t)
	s.returns(t)
}

// killContainers kills the running containers of the Pod, each once.
func killContainers(ctx context.Context, pod *corev1.Pod, killed map[string]bool) error {
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Running == nil || killed[status.ContainerID] {
			continue
		}
		if err := ground.KillContainer(ctx, site, pod.Spec.NodeName, status.ContainerID); err != nil {
			return err
		}
		killed[status.ContainerID] = true
	}
	return nil
}

// changesItsMind enables the module again as soon as leaving has begun.
func (s *leaving) changesItsMind(t *testing.T) {
	ctx := t.Context()
	require.NoError(t, site.Disable(ctx))
	require.NoError(t, site.Await(ctx, stage.Wish{What: "leaving to begin", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		gone, _, err := absent(client.ObjectKey{Namespace: names.Namespace, Name: names.PlanConfigMap}, &corev1.ConfigMap{})(ctx)
		return gone, "the plan is still there", err
	}}))
	s.returns(t)
}

const manyObjects = 500

// leavesInADeletion disables the module while the objects of a bucket are being deleted.
func (s *leaving) leavesInADeletion(t *testing.T) {
	ctx := t.Context()
	name := newBucket(t, "doomed", "100Mi")
	allowBucket(t, "doomed", "doomed", names.ReadSubresource, names.WriteSubresource)
	s.remember(t, "doomed")
	d := s.door(t)
	key, err := d.of("doomed", "doomed", "").Retrieve(ctx)
	require.NoError(t, err)
	writer := d.s3(static(key))
	for n := range manyObjects {
		require.NoError(t, put(ctx, writer, name, fmt.Sprintf("object-%d", n), []byte("soon gone")))
	}
	doomed := &v1alpha1.SystemBucket{}
	doomed.Namespace, doomed.Name = namespace, "doomed"
	require.NoError(t, site.Admin.Delete(ctx, doomed))
	require.NoError(t, site.Disable(ctx))
	s.hasLeft(t)
	require.NoError(t, site.Await(ctx, stage.Wish{What: "the SystemBucket to go", Limit: shortLimit, Look: absent(
		client.ObjectKeyFromObject(doomed), &v1alpha1.SystemBucket{})}))
	s.returns(t)
}
