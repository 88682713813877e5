package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	way "github.com/deckhouse/system-s3/tests/demo/door"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

const pageViewer = "page-viewer"

// showsPage: every replica of the controller serves the status page to whom RBAC lets see it, and to nobody else.
func (s *story) showsPage(t *testing.T) {
	viewer, stranger := s.pageToken(t, pageViewer), s.pageToken(t, "page-stranger")
	grantPage(t)
	found, err := way.Find(t.Context(), site, mainKey())
	require.NoError(t, err)
	pods := &corev1.PodList{}
	app := client.MatchingLabels{names.AppLabel: names.ControllerApp}
	require.NoError(t, site.Admin.List(t.Context(), pods, client.InNamespace(names.Namespace), app))
	require.NotEmpty(t, pods.Items)
	for _, pod := range pods.Items {
		address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(names.PagePort))
		browser := way.Way{Hosts: map[string]string{names.PageHost: address}, CA: found.CA}.Client()
		require.NoError(t, site.Await(t.Context(), stage.Wish{
			What: "the page of " + pod.Name, Limit: shortLimit,
			Look: func(ctx context.Context) (bool, string, error) {
				code, body, err := page(ctx, browser, viewer)
				var missing []string
				for _, text := range []string{ // the bucket, a replica, who may use every bucket, an event
					namespace + "/</span>" + mainKey().Name, names.GaragePod(plane, 0), "Group system:masters", "StorageReady=True",
				} {
					if !strings.Contains(body, text) {
						missing = append(missing, text)
					}
				}
				return code == http.StatusOK && len(missing) == 0, fmt.Sprintf("%d, without %v", code, missing), err
			},
		}))
		for token, code := range map[string]int{"": http.StatusUnauthorized, "nonsense": http.StatusUnauthorized, stranger: http.StatusForbidden} {
			got, body, err := page(t.Context(), browser, token)
			require.NoError(t, err)
			require.Equal(t, code, got)
			require.NotContains(t, body, mainKey().Name)
		}
	}
}

// pageToken is a token for the apiserver, of a ServiceAccount without any right.
func (s *story) pageToken(t *testing.T, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	require.NoError(t, client.IgnoreAlreadyExists(site.Admin.Create(t.Context(), account)))
	answer, err := site.Typed.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.ledger.note("a token of "+name, answer.Status.Token)
	return answer.Status.Token
}

func grantPage(t *testing.T) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "e2e-" + pageViewer}
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{names.ModuleGroup}, Resources: []string{names.ModuleResource + "/" + names.PageSubresource},
			ResourceNames: []string{names.Module}, Verbs: []string{"get"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: pageViewer}},
		},
	} {
		require.NoError(t, client.IgnoreAlreadyExists(site.Admin.Create(t.Context(), object)))
		t.Cleanup(func() { _ = site.Admin.Delete(context.Background(), object) })
	}
}

func page(ctx context.Context, browser *http.Client, token string) (code int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+names.PageHost+"/", http.NoBody)
	if err != nil {
		return 0, "", fmt.Errorf("ask for the page: %w", err)
	}
	if token != "" {
		request.SetBasicAuth("anybody", token)
	}
	answer, err := browser.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("ask for the page: %w", err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(read), err
}
