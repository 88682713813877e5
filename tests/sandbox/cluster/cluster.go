// Package cluster brings the whole Kubernetes of the sandbox up and down: its
// network, control plane, registry, storage, nodes and DNS.
package cluster

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
	"github.com/deckhouse/system-s3/tests/sandbox/network"
	"github.com/deckhouse/system-s3/tests/sandbox/node"
	"github.com/deckhouse/system-s3/tests/sandbox/process"
	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

// Cluster is the sandbox's cluster, running or not.
type Cluster struct {
	Dir       statedir.Dir
	Processes process.Table
	Store     *artifact.Store
	// Progress gets a line for each step.
	Progress io.Writer
}

// New returns the cluster that is kept in dir.
func New(dir statedir.Dir, progress io.Writer) (Cluster, error) {
	store, err := artifact.NewStore(progress)
	if err != nil {
		return Cluster{}, fmt.Errorf("open the store of builds: %w", err)
	}

	return Cluster{Dir: dir, Processes: process.NewTable(dir, progress), Store: store, Progress: progress}, nil
}

// Step runs one step of a longer work and tells how long it took.
func (c Cluster) Step(ctx context.Context, what string, work func(context.Context) error) error {
	started := time.Now()

	if err := work(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}

	fmt.Fprintf(c.Progress, "%-42s %5.1f s\n", what, time.Since(started).Seconds()) //nolint:errcheck // progress only

	return nil
}

// nodes lists the nodes that the sandbox has, running or not, by their numbers.
func (c Cluster) nodes() ([]node.Node, error) {
	folders, err := filepath.Glob(c.Dir.Path("nodes", "*"))
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}

	nodes := make([]node.Node, 0, len(folders))

	for _, folder := range folders {
		// What has another name is not a node's: it must not keep "down" from its work.
		if n, err := node.Parse(filepath.Base(folder)); err == nil {
			nodes = append(nodes, n)
		}
	}

	slices.SortFunc(nodes, byNumber)

	return nodes, nil
}

// connected lists the addresses of the nodes that are switched on.
func (c Cluster) connected() ([]address.Node, error) {
	nodes, err := c.nodes()
	if err != nil {
		return nil, err
	}

	var on []address.Node

	for _, n := range nodes {
		if network.Connected(n.Address) {
			on = append(on, n.Address)
		}
	}

	return on, nil
}
