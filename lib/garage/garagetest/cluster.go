package garagetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/layout"
)

const (
	binaryVariable = "GARAGE_BINARY"
	cachedBinary   = "system-s3/garage-2.5.0/bin/garage"

	// RPCTimeout is rpc_timeout_msec of clusters that ask for no other, in milliseconds: blocks are copied again twice as long after a
	// change.
	RPCTimeout = 10000

	startTimeout = 60 * time.Second
	tick         = 50 * time.Millisecond
)

// Options of a cluster. The zero value is a cluster that is ready for use.
type Options struct {
	// Bare leaves the cluster without layout and without the internal key, as Pods are right after their start.
	Bare bool
	// Factor is the replication factor; 0 is as many as nodes.
	Factor int
	// RPCTimeout is rpc_timeout_msec; 0 is the RPCTimeout above.
	RPCTimeout int
}

// Cluster is a running Garage cluster. AdminToken, MetricsToken and Seed have the form of the Secret garage-<plane>.
type Cluster struct {
	AdminToken   string
	MetricsToken string
	Seed         []byte // raw, 32 bytes; access.InternalKey(Seed) is the key below
	// KeyID and KeySecret are the internal key, imported unless the cluster is bare.
	KeyID     string
	KeySecret string
	Nodes     []*Node

	rpcSecret  string
	rpcTimeout int
	factor     int
	binary     string
}

// Binary is the path of Garage's binary; it ends the test when there is none.
func Binary(t testing.TB) string {
	t.Helper()
	path := os.Getenv(binaryVariable)
	if path == "" {
		cache, err := os.UserCacheDir()
		require.NoError(t, err, "find the cache folder")
		path = filepath.Join(cache, cachedBinary)
	}
	_, err := os.Stat(path) //nolint:gosec // whoever runs the tests chooses the binary
	require.NoErrorf(t, err, "Garage's binary is missing: build it (make garage) or name it in %s", binaryVariable)
	return path
}

// Start starts a cluster of so many nodes and waits until it is healthy, with the internal key imported. The cluster
// stops with the test; the logs of its nodes are shown when the test failed.
func Start(t testing.TB, nodes int) *Cluster {
	t.Helper()
	return StartWith(t, nodes, Options{})
}

// StartWith is Start with options.
func StartWith(t testing.TB, nodes int, options Options) *Cluster {
	t.Helper()
	c := newCluster(t, nodes, options)
	for _, node := range c.Nodes {
		node.prepare(t, c)
		node.Start(t)
	}
	c.waitConnected(t)
	if !options.Bare {
		c.ApplyLayout(t)
		c.importKey(t)
	}
	return c
}

func newCluster(t testing.TB, nodes int, options Options) *Cluster {
	t.Helper()
	c := &Cluster{
		AdminToken: randomHex(t), MetricsToken: randomHex(t), Seed: randomBytes(t), rpcSecret: randomHex(t),
		factor: options.Factor, rpcTimeout: cmp.Or(options.RPCTimeout, RPCTimeout), binary: Binary(t),
	}
	if c.factor == 0 {
		c.factor = nodes
	}
	c.KeyID, c.KeySecret = access.InternalKey(c.Seed)
	for ordinal := range nodes {
		c.Nodes = append(c.Nodes, newNode(t, ordinal))
	}
	return c
}

// AdminURL is the admin API of the first node.
func (c *Cluster) AdminURL() string { return c.Nodes[0].AdminURL() }

// S3URL is the S3 API of the first node.
func (c *Cluster) S3URL() string { return c.Nodes[0].S3URL() }

// Client is a client of the admin API of the first node.
func (c *Cluster) Client() *garage.Client { return c.ClientOf(0) }

// ClientOf is a client of the admin API of a node.
func (c *Cluster) ClientOf(ordinal int) *garage.Client {
	return garage.New(c.Nodes[ordinal].AdminURL(), c.AdminToken, http.DefaultClient)
}

// CreateBucket makes a bucket with the name and grants the internal key read and write. It returns the bucket's id.
func (c *Cluster) CreateBucket(t testing.TB, name string) string {
	t.Helper()
	bucket, err := c.Client().CreateBucket(t.Context())
	require.NoError(t, err)
	_, err = c.Client().AddBucketAlias(t.Context(), bucket.ID, name)
	require.NoError(t, err)
	_, err = c.Client().AllowBucketKey(t.Context(), bucket.ID, c.KeyID, garage.Permissions{Read: true, Write: true})
	require.NoError(t, err)
	return bucket.ID
}

// ApplyLayout gives every node its role, in the form that lib/layout plans, and waits until the cluster is healthy.
func (c *Cluster) ApplyLayout(t testing.TB) {
	t.Helper()
	client := c.Client()
	for {
		current, err := client.GetClusterLayout(t.Context())
		require.NoError(t, err)
		step := layout.Decide(layout.World{Layout: current, Factor: c.factor, Nodes: c.layoutNodes()})
		switch step.Kind {
		case layout.Stage:
			require.NoError(t, client.UpdateClusterLayout(t.Context(), step.Changes))
		case layout.Apply:
			require.NoError(t, client.ApplyClusterLayout(t.Context(), step.Version))
		case layout.Steady:
			c.waitHealthy(t)
			return
		default:
			require.FailNow(t, "the layout cannot be applied", step.Message)
		}
	}
}

func (c *Cluster) layoutNodes() []layout.Node {
	nodes := make([]layout.Node, 0, len(c.Nodes))
	for _, node := range c.Nodes {
		nodes = append(nodes, layout.Node{ID: node.ID, Name: node.name, Presence: layout.Up})
	}
	return nodes
}

func (c *Cluster) importKey(t testing.TB) {
	t.Helper()
	key := garage.Key{AccessKeyID: c.KeyID, SecretAccessKey: c.KeySecret, Name: "system-s3"}
	require.NoError(t, c.Client().ImportKey(t.Context(), key))
	for ordinal := range c.Nodes {
		wait(t, fmt.Sprintf("node %d knows the internal key", ordinal), func(ctx context.Context) error {
			_, err := c.ClientOf(ordinal).GetKeyInfo(ctx, c.KeyID)
			return err
		})
	}
}

func (c *Cluster) waitConnected(t testing.TB) {
	t.Helper()
	for ordinal := range c.Nodes {
		wait(t, fmt.Sprintf("node %d sees all others", ordinal), func(ctx context.Context) error {
			health, err := c.ClientOf(ordinal).GetClusterHealth(ctx)
			if err == nil && health.ConnectedNodes < len(c.Nodes) {
				return fmt.Errorf("%d of %d nodes are connected", health.ConnectedNodes, len(c.Nodes))
			}
			return err
		})
	}
}

var errNotHealthy = errors.New("not healthy")

func (c *Cluster) waitHealthy(t testing.TB) {
	t.Helper()
	for ordinal := range c.Nodes {
		wait(t, fmt.Sprintf("node %d is healthy", ordinal), func(ctx context.Context) error {
			health, err := c.ClientOf(ordinal).GetClusterHealth(ctx)
			if err == nil && !health.Healthy() {
				return errNotHealthy
			}
			return err
		})
	}
}

// wait repeats the attempt until it succeeds; the test ends when it does not within the time a start may take.
func wait(t testing.TB, what string, attempt func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		err := attempt(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			require.NoError(t, err, "waited in vain: "+what)
		case <-ticker.C:
		}
	}
}

func (c *Cluster) bootstrapPeers() string {
	peers := make([]string, 0, len(c.Nodes))
	for _, node := range c.Nodes {
		peers = append(peers, fmt.Sprintf("%q", node.ID+"@"+node.rpc))
	}
	return strings.Join(peers, ", ")
}
