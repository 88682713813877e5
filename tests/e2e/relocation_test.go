//go:build placement

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/tour/ground"
)

// moveLimit is how long the moves of two replicas may take: each has a proof before it, the filling, and the pause.
const moveLimit = 25 * time.Minute

// moving is the story of replicas whose volumes are tied to nodes that leave, while clients work.
type moving struct {
	placing

	ground *ground.Ground
}

// TestRelocation: two nodes of three leave the tier, then one is lost for good with its disk.
func TestRelocation(t *testing.T) {
	s := &moving{placing: placing{story{ledger: &ledger{}}}, ground: &ground.Ground{
		Stage: site, Bucket: mainKey(), Dice: rand.New(rand.NewPCG(1, 0)),
	}}
	s.addNodes(t)
	tell(t,
		chapter{name: "three replicas on masters, proven", play: s.settles, rest: true},
		chapter{name: "another tier draws two of them under load", play: s.followsTheTier, rest: true},
		chapter{name: "a node is lost with its disk under load", play: s.outlivesANode},
	)
}

// addNodes makes node-4 and node-5, which are of no tier.
func (s *moving) addNodes(t *testing.T) {
	t.Helper()
	for _, name := range []string{"node-4", "node-5"} {
		err := site.Admin.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Node{})
		if apierrors.IsNotFound(err) {
			err = s.ground.Sandbox(t.Context(), "node", "add", name)
		}
		require.NoError(t, err)
	}
}

// give gives nodes the labels of tiers; the others lose theirs.
func give(t *testing.T, wanted map[string][]string) {
	t.Helper()
	all, err := roles(t.Context())
	require.NoError(t, err)
	for name := range all {
		all[name] = wanted[name]
	}
	require.NoError(t, assign(t.Context(), all))
}

func (s *moving) settles(t *testing.T) {
	give(t, map[string][]string{"node-1": {master}, "node-2": {master}, "node-3": {master}})
	s.reset(t)
	require.NoError(t, site.Bucket(t.Context(), mainKey(), "1Gi"))
	awaitPlaces(t, "node-1", "node-2", "node-3")
}

// awaitPlaces waits until the replicas are on these nodes, each proven to hold everything; never were two away at once.
func awaitPlaces(t *testing.T, wanted ...string) {
	t.Helper()
	fewest := len(wanted)
	before, err := places(t.Context())
	require.NoError(t, err)
	running := len(before) == len(wanted)
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: fmt.Sprint("replicas on ", wanted), Limit: moveLimit, Look: func(ctx context.Context) (bool, string, error) {
		found, err := places(ctx)
		if err != nil {
			return false, "", err
		}
		on := slices.DeleteFunc(slices.Sorted(maps.Values(found)), func(node string) bool { return node == "" })
		if running {
			fewest = min(fewest, len(on))
		}
		whole, told, err := wholeReplicas(ctx)
		return slices.Equal(on, wanted) && whole == len(wanted), fmt.Sprint(found, " ", told), err
	}}))
	require.GreaterOrEqual(t, fewest, len(wanted)-1, "two replicas were away at once")
	awaitText(t, storageReady, "True", plan.ReasonReady, "The store serves all requests.")
}

// wholeReplicas is how many replicas are proven to hold everything, and what PlacementReady says.
func wholeReplicas(ctx context.Context) (int, string, error) {
	state, err := readState(ctx)
	if err != nil {
		return 0, "", err
	}
	whole := 0
	for _, p := range state.Planes {
		for _, r := range p.Replicas {
			if r.Up && r.Proven != "" && r.Proven == r.Content {
				whole++
			}
		}
	}
	placed, err := site.Condition(ctx, placementReady)
	return whole, placed.String(), err
}

// readState is what the controller tells; empty while it tells nothing.
func readState(ctx context.Context) (plan.State, error) {
	object, state := &corev1.ConfigMap{}, plan.State{}
	err := site.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.StateConfigMap}, object)
	if apierrors.IsNotFound(err) {
		return state, nil
	}
	if err != nil {
		return state, fmt.Errorf("read the state: %w", err)
	}
	if err := json.Unmarshal([]byte(object.Data[names.StateKey]), &state); err != nil {
		return state, fmt.Errorf("decode the state: %w", err)
	}
	return state, nil
}

// followsTheTier: node-3 gets the role as well, so that its replica stays.
func (s *moving) followsTheTier(t *testing.T) {
	clients := work(t, s.ground, "tier/", 1)
	clients.Begin("the tier changes")
	role := plan.SystemS3NodeLabel
	give(t, map[string][]string{"node-1": {master}, "node-2": {master}, "node-3": {master, role}, "node-4": {role}, "node-5": {role}})
	awaitPlaces(t, "node-3", "node-4", "node-5")
	tellPhase(t, clients.Begin("rest"))
	end(t, clients)
	awaitText(t, placementReady, "True", plan.ReasonPlaced, "Three replicas on nodes with the label node-role.deckhouse.io/system-s3.")
}

// outlivesANode: the Node object is what proves that it does not come back.
func (s *moving) outlivesANode(t *testing.T) {
	clients := work(t, s.ground, "lost/", 2)
	clients.Begin("a node is lost")
	require.NoError(t, s.ground.Sandbox(t.Context(), "node", "lose", "node-5"))
	lost := &corev1.Node{}
	lost.Name = "node-5"
	require.NoError(t, client.IgnoreNotFound(site.Admin.Delete(t.Context(), lost)))
	role := plan.SystemS3NodeLabel
	give(t, map[string][]string{"node-1": {master, role}, "node-2": {master}, "node-3": {master, role}, "node-4": {role}})
	awaitPlaces(t, "node-1", "node-3", "node-4")
	tellPhase(t, clients.Begin("rest"))
	end(t, clients)
}
