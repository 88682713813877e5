package platform

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func testGate(t *testing.T) http.Handler {
	t.Helper()

	settings, err := ParseSettings([]byte(settingsSchema))
	require.NoError(t, err)

	return Gate{
		Definition: protected("The store stops."), Settings: settings,
		Facts:        ClusterFacts{DeckhouseVersion: "v1.78.0", KubernetesVersion: "v1.34.4"},
		Experimental: func(context.Context) bool { return false },
	}.Handler()
}

// ask sends a review and returns the answer.
func ask(t *testing.T, path string, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()

	body, err := json.Marshal(admissionv1.AdmissionReview{Request: request})
	require.NoError(t, err)

	recorder := httptest.NewRecorder()
	testGate(t).ServeHTTP(recorder, httptest.NewRequestWithContext(
		t.Context(), http.MethodPost, path, strings.NewReader(string(body))))
	require.Equal(t, http.StatusOK, recorder.Code)

	var review admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &review))
	assert.Equal(t, request.UID, review.Response.UID)

	return review.Response
}

// raw is one side of a write; an empty one is absent.
func raw(text string) runtime.RawExtension {
	if text == "" {
		return runtime.RawExtension{}
	}

	return runtime.RawExtension{Raw: []byte(text)}
}

func TestModuleConfigWebhook(t *testing.T) {
	t.Parallel()

	const on = `{"metadata":{"name":"system-s3"},"spec":{"enabled":true}}`

	cases := map[string]struct {
		reason   string
		name     string
		old, new string
		want     string
	}{
		"good settings": {
			reason: "allowed", name: "system-s3",
			new: `{"spec":{"enabled":true,"version":1,"settings":{"replicas":2}}}`,
		},
		"bad settings": {
			reason: "refused with the field's name", name: "system-s3",
			new: `{"spec":{"enabled":true,"version":1,"settings":{"replicas":"two"}}}`, want: "spec.settings.replicas",
		},
		"disabling": {
			reason: "refused with the module's message", name: "system-s3",
			old: on, new: `{"spec":{"enabled":false}}`, want: "The store stops.",
		},
		"deletion": {
			reason: "refused as well", name: "system-s3", old: on, want: allowDisabling,
		},
		"another module": {
			reason: "its settings are not ours to judge", name: "prometheus", new: `{"spec":{"settings":{"x":1}}}`,
		},
		"embedded source": {
			reason: "nobody may claim it", name: "prometheus", new: `{"spec":{"source":"Embedded"}}`, want: "spec.source",
		},
		"nonsense": {
			reason: "what cannot be read is not allowed", name: "system-s3", new: `{"spec":7}`, want: "read ModuleConfig",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			answer := ask(t, moduleConfigPath, &admissionv1.AdmissionRequest{
				UID: "u", Name: c.name, OldObject: raw(c.old), Object: raw(c.new),
			})
			assert.Equal(t, c.want == "", answer.Allowed, c.reason)

			if c.want != "" {
				assert.Contains(t, answer.Result.Message, c.want, c.reason)
			}
		})
	}
}

func TestModuleWebhook(t *testing.T) {
	t.Parallel()

	request := func(user string) *admissionv1.AdmissionRequest {
		return &admissionv1.AdmissionRequest{UID: "u", UserInfo: authenticationv1.UserInfo{Username: user}}
	}

	assert.True(t, ask(t, modulePath, request(deckhouseUser)).Allowed)
	assert.False(t, ask(t, modulePath, request("kubernetes-admin")).Allowed, "Modules belong to Deckhouse")
}

func TestWebhookRefusesNonsense(t *testing.T) {
	t.Parallel()

	recorder := httptest.NewRecorder()
	testGate(t).ServeHTTP(recorder, httptest.NewRequestWithContext(
		t.Context(), http.MethodPost, moduleConfigPath, strings.NewReader("{}")))
	assert.Equal(t, http.StatusBadRequest, recorder.Code)
}
