package registry_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/sandbox/image"
	"github.com/deckhouse/system-s3/tests/sandbox/registry"
)

func TestContentOutlivesTheProcess(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	handler, err := registry.NewHandler(folder)
	require.NoError(t, err)

	server := httptest.NewServer(handler)
	host := strings.TrimPrefix(server.URL, "http://")

	digest, err := image.Push(t.Context(), host, "thing", image.Image{Files: []image.File{{Path: "a", Content: []byte("a")}}})
	require.NoError(t, err)
	server.Close()

	again, err := registry.NewHandler(folder)
	require.NoError(t, err)

	for _, reference := range []string{digest, "latest"} {
		answer := httptest.NewRecorder()
		again.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/v2/thing/manifests/"+reference, http.NoBody))
		assert.Equal(t, http.StatusOK, answer.Code, reference)
	}
}
