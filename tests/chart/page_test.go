package chart

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// published renders the chart of a platform with web interfaces in the HTTPS mode.
func published(t *testing.T, mode string, modules ...string) map[string]unstructured.Unstructured {
	t.Helper()
	values := masters(3).bucket(1).values(t)
	global := values["global"].(map[string]any)
	global["enabledModules"] = modules
	global["modules"] = map[string]any{
		"publicDomainTemplate": "%s.example.test", "ingressClass": "front",
		"https": map[string]any{"mode": mode, "certManager": map[string]any{"clusterIssuerName": "own"}},
	}
	internal := values["systemS3"].(map[string]any)["internal"].(map[string]any)
	internal["customCertificate"] = map[string]any{"crt": "CRT", "key": "KEY"}
	files, err := Render(root, asJSON(t, values))
	require.NoError(t, err)
	objects, err := Objects(files)
	require.NoError(t, err)
	found := map[string]unstructured.Unstructured{}
	for _, each := range objects {
		if each.GetKind() != "Secret" || each.GetName() == "ingress-tls-customcertificate" {
			found[each.GetKind()+"/"+each.GetName()] = each
		}
	}
	return found
}

func TestPageIsPublishedThroughThePlatform(t *testing.T) {
	cases := map[string]struct {
		mode, secret string
		certificate  string
	}{
		"cert-manager":       {"CertManager", "ingress-tls", "Certificate/page"},
		"custom certificate": {"CustomCertificate", "ingress-tls-customcertificate", "Secret/ingress-tls-customcertificate"},
		"TLS ends before":    {"OnlyInURI", "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			found := published(t, c.mode, "user-authn")
			ingress, ok := found["Ingress/page"]
			require.True(t, ok)
			const annotation = "nginx.ingress.kubernetes.io/"
			annotations := ingress.GetAnnotations()
			require.Equal(t, "HTTPS", annotations[annotation+"backend-protocol"])
			require.Equal(t, "https://page-dex-authenticator.d8-system-s3.svc.cluster.test/dex-authenticator/auth", annotations[annotation+"auth-url"])
			require.Equal(t, "Authorization", annotations[annotation+"auth-response-headers"], "without the token the page lets nobody in")
			require.Contains(t, annotations[annotation+"configuration-snippet"], "Strict-Transport-Security")
			require.Equal(t, "front", field(t, ingress, "spec", "ingressClassName"))
			authenticator := found["DexAuthenticator/page"]
			require.Equal(t, "system-s3.example.test", field(t, authenticator, "spec", "applicationDomain"))
			require.Equal(t, "true", authenticator.GetAnnotations()["dexauthenticator.deckhouse.io/allow-access-to-kubernetes"])
			require.Equal(t, true, authenticator.Object["spec"].(map[string]any)["sendAuthorizationHeader"])
			secret, _, err := unstructured.NestedString(authenticator.Object, "spec", "applicationIngressCertificateSecretName")
			require.NoError(t, err)
			require.Equal(t, c.secret, secret, "none when TLS ends before")
			_, hasTLS := ingress.Object["spec"].(map[string]any)["tls"]
			require.Equal(t, c.secret != "", hasTLS)
			for _, each := range []string{"Certificate/page", "Secret/ingress-tls-customcertificate"} {
				_, printed := found[each]
				require.Equal(t, each == c.certificate, printed, each)
			}
		})
	}
}

func TestPageHasNoAddressWithoutAuthentication(t *testing.T) {
	require.NotContains(t, published(t, "CertManager"), "Ingress/page", "nobody could say who they are")
	require.NotContains(t, published(t, "Disabled", "user-authn"), "Ingress/page", "tokens would travel in the clear")
	for _, object := range objects(t, masters(1)) {
		require.NotEqual(t, "Ingress", object.GetKind(), "there is no domain")
	}
}

func TestOnlyIngressControllersReachThePage(t *testing.T) {
	for _, object := range objects(t, masters(3)) {
		if object.GetKind() != "NetworkPolicy" || object.GetName() != "controller" {
			continue
		}
		rules, _, err := unstructured.NestedSlice(object.Object, "spec", "ingress")
		require.NoError(t, err)
		for _, rule := range rules {
			ports := rule.(map[string]any)["ports"].([]any)
			for _, port := range ports {
				if port.(map[string]any)["port"] == "https-page" {
					require.Len(t, ports, 1)
					require.Equal(t, []any{map[string]any{"namespaceSelector": map[string]any{
						"matchLabels": map[string]any{"kubernetes.io/metadata.name": "d8-ingress-nginx"},
					}}}, rule.(map[string]any)["from"])
					return
				}
			}
		}
	}
	require.Fail(t, "no rule for the page")
}
