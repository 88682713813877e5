package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
	"github.com/deckhouse/system-s3/tests/sandbox/controlplane"
	"github.com/deckhouse/system-s3/tests/sandbox/node"
)

var (
	errNoNode   = errors.New("no such node")
	errSameSeat = errors.New("another node has this number")
)

// AddNode adds a node, or switches it on again, and returns when it is ready.
func (c Cluster) AddNode(ctx context.Context, name string, isMaster bool) error {
	n, err := node.Parse(name)
	if err != nil {
		return fmt.Errorf("add a node: %w", err)
	}

	return c.locked(ctx, func(ctx context.Context, nodes []node.Node) error {
		clash := func(other node.Node) bool { return other.Address == n.Address && other.Name != n.Name }
		if slices.ContainsFunc(nodes, clash) {
			return fmt.Errorf("add %s: %w", name, errSameSeat)
		}

		if err := c.boot(ctx, n); err != nil {
			return err
		}

		client, err := controlplane.Client(c.Dir)
		if err != nil {
			return fmt.Errorf("add %s: %w", name, err)
		}

		wanted := worker
		if isMaster {
			wanted = master
		}

		if err := assign(ctx, client, name, wanted); err != nil {
			return err
		}

		return c.awaitNode(ctx, client, name)
	})
}

// StartNode switches a stopped node on and returns when it is ready.
func (c Cluster) StartNode(ctx context.Context, name string) error {
	return c.onNode(ctx, name, func(ctx context.Context, n node.Node) error {
		if err := c.boot(ctx, n); err != nil {
			return err
		}

		client, err := controlplane.Client(c.Dir)
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}

		return c.awaitNode(ctx, client, name)
	})
}

// StopNode switches the node off at once; its disks stay.
func (c Cluster) StopNode(ctx context.Context, name string) error {
	return c.onNode(ctx, name, c.runner("").Stop)
}

// LoseNode switches the node off for ever and destroys its disks. Its Node object
// stays, as after a fire; "up" or AddNode bring an empty machine of that name.
func (c Cluster) LoseNode(ctx context.Context, name string) error {
	return c.onNode(ctx, name, c.runner("").Lose)
}

func (c Cluster) boot(ctx context.Context, n node.Node) error {
	binary, err := c.Store.Ensure(ctx, artifact.Kubernetes())
	if err != nil {
		return fmt.Errorf("build Kubernetes: %w", err)
	}

	found, err := c.images(ctx)
	if err != nil {
		return err
	}

	if err := c.network(ctx, []node.Node{n}); err != nil {
		return err
	}

	runner := c.runner(binary)
	runner.PauseImage = found.pause

	if err := runner.Start(ctx, n); err != nil {
		return fmt.Errorf("boot: %w", err)
	}

	return nil
}

func (c Cluster) onNode(ctx context.Context, name string, work func(context.Context, node.Node) error) error {
	return c.locked(ctx, func(ctx context.Context, nodes []node.Node) error {
		for _, n := range nodes {
			if n.Name == name {
				return work(ctx, n)
			}
		}

		return fmt.Errorf("%s: %w", name, errNoNode)
	})
}

func (c Cluster) locked(ctx context.Context, work func(context.Context, []node.Node) error) error {
	if !c.Dir.Exists() {
		return errDown
	}

	unlock, err := c.Dir.Lock(ctx, c.Progress)
	if err != nil {
		return fmt.Errorf("change the nodes: %w", err)
	}
	defer unlock()

	nodes, err := c.nodes()
	if err != nil {
		return err
	}

	return work(ctx, nodes)
}
