package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/consumer"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/sandbox/command"
)

// chaosLength is how long the clients work while parts of the store are taken away.
const chaosLength = 80 * time.Second

// survives lets clients work while the controller, gateways and Garage are taken away one after another.
func (s *story) survives(t *testing.T) {
	ctx := t.Context()
	c := allow(t, "stubborn", names.ReadSubresource, names.WriteSubresource)
	c.Image = s.push(t).program
	// The SDK bridges a moment by itself; a single replica that is started anew takes longer.
	c.Args = []string{"-for", chaosLength.String(), "-interval", "100ms", "-patience", "2m", "-size", "65536", "-prefix", "chaos/"}
	require.NoError(t, site.Start(ctx, c.Pod()))

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	attacks := []func(context.Context, *rand.Rand) (string, error){
		deleteOne(names.ControllerApp), deleteOne(names.GarageApp), killGateway, deleteOne(names.GarageApp), killGateway, deleteOne(names.ControllerApp),
	}
	dice.Shuffle(len(attacks), func(i, j int) { attacks[i], attacks[j] = attacks[j], attacks[i] })
	for _, attack := range attacks {
		pause(ctx, time.Duration(1000+dice.IntN(4000))*time.Millisecond)
		what, err := attack(ctx, dice)
		require.NoError(t, err)
		t.Log(what)
		require.NoError(t, awaitHealth(ctx))
	}
	ended := site.AwaitEnd(ctx, c.Key(), podLimit)
	log, err := site.Logs(ctx, c.Key(), corev1.PodLogOptions{})
	require.NoError(t, err)
	require.NoError(t, ended, log)
	t.Log(log)
	require.NoError(t, site.AwaitBucket(ctx, mainKey(), moduleLimit))
	t.Run("a consumer that starts now", func(t *testing.T) { runAgain(t, s.push(t).cli) })
}

func runAgain(t *testing.T, image string) {
	t.Helper()
	c := allow(t, "aws-cli", names.ReadSubresource, names.WriteSubresource)
	c.Image, c.Args = image, []string{consumer.CopyScript}
	require.Contains(t, run(t, c), "both files are the same")
}

// pause lets the clients work for a random while: the moment of an attack is what is random.
func pause(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// victim is one of the Pods with the label.
func victim(ctx context.Context, app string, dice *rand.Rand) (*corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := site.Admin.List(ctx, pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: app})
	if err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	if len(pods.Items) == 0 {
		return nil, fmt.Errorf("there is no Pod of %s", app)
	}
	return &pods.Items[dice.IntN(len(pods.Items))], nil
}

func deleteOne(app string) func(context.Context, *rand.Rand) (string, error) {
	return func(ctx context.Context, dice *rand.Rand) (string, error) {
		pod, err := victim(ctx, app, dice)
		if err != nil {
			return "", err
		}
		// Half of the time without grace, as when a node dies.
		grace := client.GracePeriodSeconds(int64(30 * dice.IntN(2)))
		return "deleted Pod " + pod.Name, client.IgnoreNotFound(site.Deckhouse.Delete(ctx, pod, grace))
	}
}

// killGateway kills the gateway's container and leaves Garage beside it alone.
func killGateway(ctx context.Context, dice *rand.Rand) (string, error) {
	pod, err := victim(ctx, names.GarageApp, dice)
	if err != nil {
		return "", err
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != names.GatewayContainer || status.State.Running == nil {
			continue
		}
		id := strings.TrimPrefix(status.ContainerID, "containerd://")
		socket := site.Dir.Node(pod.Spec.NodeName, "containerd.sock")
		err := command.Run(ctx, "ctr", "--address", socket, "--namespace", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", id)
		if err != nil {
			return "", err
		}
		return "killed the gateway of " + pod.Name, awaitRestart(ctx, client.ObjectKeyFromObject(pod), status.RestartCount)
	}
	return "the gateway of " + pod.Name + " did not run", nil
}

// awaitRestart waits until kubelet has noticed.
func awaitRestart(ctx context.Context, key client.ObjectKey, before int32) error {
	return site.Await(ctx, stage.Wish{What: "the gateway to be started anew", Limit: moduleLimit, Look: func(ctx context.Context) (bool, string, error) {
		pod := &corev1.Pod{}
		if err := site.Admin.Get(ctx, key, pod); err != nil {
			return false, "", err
		}
		for _, status := range pod.Status.ContainerStatuses {
			if status.Name == names.GatewayContainer && status.RestartCount > before {
				return true, "", nil
			}
		}
		return false, "", nil
	}})
}
