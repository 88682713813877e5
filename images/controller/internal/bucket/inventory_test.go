package bucket_test

import (
	"fmt"
	"net/http"
	"path"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/bucket"
	"github.com/deckhouse/system-s3/images/controller/internal/fixture"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/plan"
)

// counter counts the calls of Garage's admin API by name.
type counter struct {
	mu    sync.Mutex
	calls map[string]int
}

// RoundTrip implements http.RoundTripper.
func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.calls[path.Base(r.URL.Path)]++
	c.mu.Unlock()
	return http.DefaultTransport.RoundTrip(r) //nolint:wrapcheck // it is the client's own
}

func (c *counter) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.calls
	c.calls = map[string]int{}
	return taken
}

// A pass over all SystemBuckets asks Garage as much as what changed needs, not once for each that exists.
func TestAsksGarageForWhatChanged(t *testing.T) {
	t.Parallel()
	const count = 20
	cluster, calls := garagetest.Start(t, 1), &counter{calls: map[string]int{}}
	s := newStage(t)
	connection := fixture.Connection(cluster)
	connection.Admin = garage.New(cluster.AdminURL(), cluster.AdminToken, &http.Client{Transport: calls})
	s.board.Post(backend.Store{Exists: true, Ready: plan.Verdict{OK: true, Reason: plan.ReasonReady}, Connection: connection})
	keys := []client.ObjectKey{key}
	for n := range count - 1 {
		sb := &v1alpha1.SystemBucket{}
		sb.Namespace, sb.Name, sb.UID, sb.Generation = namespace, fmt.Sprintf("b%d", n), types.UID(fmt.Sprint(n)), 1
		sb.Spec.Size = resource.MustParse("10Mi")
		require.NoError(t, s.client.Create(t.Context(), sb))
		keys = append(keys, client.ObjectKeyFromObject(sb))
	}
	passes := func() map[string]int {
		for _, each := range keys {
			_, err := s.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: each})
			require.NoError(t, err)
		}
		return calls.take()
	}
	s.reconciler.Inventory = bucket.NewInventory()
	passes() // all are made

	s.reconciler.Inventory = bucket.NewInventory() // a new process
	assert.Equal(t, map[string]int{"ListBucketsInfo": 1}, passes(), "one list answers for all")
	assert.Empty(t, passes(), "and for a while")

	sb := s.get()
	sb.Spec.Size, sb.Generation = resource.MustParse("20Mi"), 2
	require.NoError(t, s.client.Update(t.Context(), sb))
	assert.Equal(t, map[string]int{"GetBucketInfo": 1, "UpdateBucket": 1}, passes(), "only the one that changed")
	assert.Empty(t, passes(), "what a change has made of it is known")
}
