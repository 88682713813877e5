package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
)

// anyToken matches a token of any ServiceAccount, whoever it was given to.
var anyToken = regexp.MustCompile(`eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}`)

// keepsSecrets looks everywhere for the keys and tokens that this run was given, and in our logs for any token at all.
func (s *story) keepsSecrets(t *testing.T) {
	require.Greater(t, s.ledger.size(), 10, "the chapters before have used keys and tokens")
	places := map[string]string{}
	s.searchObjects(t, places)
	s.searchLogs(t, places)
	require.Greater(t, len(places), 10, "there is something to look at")
	for place, text := range places {
		assert.Empty(t, s.ledger.find(text), "in %s", place)
	}
}

// searchObjects adds all Secrets, ConfigMaps and events of the cluster.
func (*story) searchObjects(t *testing.T, places map[string]string) {
	t.Helper()
	secrets, configs, events := &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.EventList{}
	for _, list := range []client.ObjectList{secrets, configs, events} {
		require.NoError(t, site.Admin.List(t.Context(), list))
	}
	for i := range secrets.Items {
		text := "" // decoded: the JSON of a Secret holds base64
		for _, value := range secrets.Items[i].Data {
			text += string(value) + "\n"
		}
		places["Secret "+client.ObjectKeyFromObject(&secrets.Items[i]).String()] = text
	}
	add := func(kind string, object client.Object) {
		data, err := json.Marshal(object)
		require.NoError(t, err)
		places[kind+" "+client.ObjectKeyFromObject(object).String()] = string(data)
	}
	for i := range configs.Items {
		add("ConfigMap", &configs.Items[i])
	}
	for i := range events.Items {
		add("Event", &events.Items[i])
	}
}

// searchLogs adds what the module's containers have written, before a restart too, and what the sandbox's programs have.
func (*story) searchLogs(t *testing.T, places map[string]string) {
	t.Helper()
	pods, err := site.Typed.CoreV1().Pods(names.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, container := range pod.Spec.Containers {
			for _, previous := range []bool{false, true} {
				log, err := site.Logs(t.Context(), client.ObjectKeyFromObject(pod), corev1.PodLogOptions{Container: container.Name, Previous: previous})
				if err != nil {
					continue // there was no container before, or there is none yet
				}
				assert.Empty(t, anyToken.FindString(log), "a token in the log of %s/%s", pod.Name, container.Name)
				places["log of "+pod.Name+"/"+container.Name] += log
			}
		}
	}
	files, err := filepath.Glob(site.Dir.Path("logs", "*.log"))
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		places[filepath.Base(file)] = string(data)
	}
}
