package serving

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
)

func TestAFenceSurvivesARestart(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	dir := t.TempDir()
	start := func() *rig { return newRig(t, cluster, func(c *Config) { c.VolumeDir = dir }) }
	r := start()
	require.NoError(t, putting(testBucket)(t.Context(), r.s3(r.key(testBucket, access.ReadWrite), noRetry)))
	status, _ := r.push(http.MethodPut, "/gateway/v1/fence", cluster.AdminToken, `{"to":"https://10.0.0.1:443"}`)
	require.Equal(t, http.StatusNotImplemented, status, "what it cannot do is not acknowledged")
	status, answer := r.push(http.MethodPut, "/gateway/v1/fence", cluster.AdminToken, `{"to":""}`)
	require.Equal(t, http.StatusOK, status, answer)

	for _, each := range []*rig{r, start()} {
		status, answer := each.push(http.MethodGet, "/gateway/v1/fence", cluster.AdminToken, "")
		require.Equal(t, http.StatusOK, status)
		require.JSONEq(t, `{"fenced":true,"to":""}`, answer)
		client := each.s3(each.key(testBucket, access.ReadWrite), noRetry)
		ctx, leave := context.WithCancel(t.Context())
		written := make(chan error, 1)
		go func() { written <- putting(testBucket)(ctx, client) }()
		require.NoError(t, getting(testBucket)(t.Context(), client), "reads go on")
		select {
		case err := <-written:
			t.Fatalf("a write has come through a fence: %v", err)
		default:
		}
		leave()
		require.ErrorIs(t, <-written, context.Canceled)
	}
}
