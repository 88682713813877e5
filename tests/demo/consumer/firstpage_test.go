package consumer_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/deckhouse/system-s3/tests/demo/consumer"
)

var podBlock = regexp.MustCompile("(?s)```yaml\n( +apiVersion: v1\n +kind: Pod\n.*?)```")

// What the first page of the documentation shows reaches a bucket in the same way as the demo's consumers.
func TestTheFirstPageShowsThisConsumer(t *testing.T) {
	page, err := os.ReadFile("../../../docs/README.md")
	require.NoError(t, err)
	block := podBlock.FindStringSubmatch(string(page))
	require.NotNil(t, block, "the page shows no Pod")
	text := strings.ReplaceAll("\n"+block[1], "\n   ", "\n")
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(text), nil, nil)
	require.NoError(t, err)
	shown := object.(*corev1.Pod)
	ours := consumer.Consumer{Name: shown.Name, Namespace: shown.Namespace, Bucket: "data"}.Pod()

	require.Equal(t, ours.Spec.ServiceAccountName, shown.Spec.ServiceAccountName)
	require.Equal(t, ours.Spec.AutomountServiceAccountToken, shown.Spec.AutomountServiceAccountToken)
	require.Equal(t, ours.Spec.Containers[0].EnvFrom, shown.Spec.Containers[0].EnvFrom)
	require.Equal(t, ours.Spec.Containers[0].VolumeMounts[0], shown.Spec.Containers[0].VolumeMounts[0])
	require.Len(t, shown.Spec.Volumes, 1)
	token := shown.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken
	token.ExpirationSeconds = ours.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken.ExpirationSeconds // the demo's is the shortest
	require.Equal(t, ours.Spec.Volumes[0], shown.Spec.Volumes[0])
}
