package consumer_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/demo/consumer"
)

func TestScriptsAreValidBash(t *testing.T) {
	for name, script := range map[string]string{"copy": consumer.CopyScript, "refused": consumer.RefusedScript} {
		out, err := exec.CommandContext(t.Context(), "bash", "-n", "-c", script).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
	}
}

func TestPodIsToldNothingButTheConfigMap(t *testing.T) {
	pod := consumer.Consumer{Name: "app", Namespace: "d8-app", Bucket: "data", Image: "image"}.Pod()
	require.Len(t, pod.Spec.Containers, 1)
	container := pod.Spec.Containers[0]
	require.Empty(t, container.Env)
	require.Len(t, container.EnvFrom, 1)
	require.Equal(t, "data-s3", container.EnvFrom[0].ConfigMapRef.Name)
	require.False(t, *pod.Spec.AutomountServiceAccountToken, "only a token for the store's audience")
	require.True(t, *pod.Spec.SecurityContext.RunAsNonRoot)
	require.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
}
