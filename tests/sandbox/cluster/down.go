package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/disk"
	"github.com/deckhouse/system-s3/tests/sandbox/network"
	"github.com/deckhouse/system-s3/tests/sandbox/node"
)

// Down removes the whole sandbox, from whatever state it is in: every process,
// mount, loop device, namespace, link and file. Without a sandbox it does nothing.
func (c Cluster) Down(ctx context.Context) error {
	if !c.Dir.Exists() {
		return nil
	}

	if err := c.Dir.Create(); err != nil {
		return fmt.Errorf("take down: %w", err)
	}

	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()

	nodes, err := c.nodes()
	if err != nil {
		return err
	}

	for _, s := range []struct {
		what string
		work func(context.Context) error
	}{
		// All at once, and hard: there is nothing to save.
		{"processes", func(ctx context.Context) error { return c.Processes.KillGroup(ctx, "") }},
		{"nodes", func(ctx context.Context) error { return c.stopAll(ctx, nodes) }},
		{"mounts and loop devices", func(ctx context.Context) error { return disk.ReleaseBelow(ctx, string(c.Dir)) }},
		{"network", removeNetwork},
		{"what the nodes left elsewhere", func(ctx context.Context) error {
			return errors.Join(node.Sweep(ctx, string(c.Dir)), c.restoreKernel())
		}},
		{"files", func(context.Context) error { return c.Dir.Remove() }},
	} {
		if err := c.Step(ctx, "removing "+s.what, s.work); err != nil {
			return err
		}
	}

	return nil
}

func (c Cluster) stopAll(ctx context.Context, nodes []node.Node) error {
	runner := c.runner("")
	for _, n := range nodes {
		if err := runner.Stop(ctx, n); err != nil {
			return fmt.Errorf("take down: %w", err)
		}
	}

	return nil
}

// removeNetwork removes also what no node is known for: a kill may have come
// between the making of the cable and that of anything else.
func removeNetwork(ctx context.Context) error {
	namespaces, err := filepath.Glob("/run/netns/*")
	if err != nil {
		return fmt.Errorf("list the namespaces: %w", err)
	}

	links, err := filepath.Glob("/sys/class/net/*")
	if err != nil {
		return fmt.Errorf("list the links: %w", err)
	}

	for number := 1; number <= address.MaxNode; number++ {
		n, err := address.NewNode(number)
		if err != nil {
			return fmt.Errorf("list the nodes: %w", err)
		}

		if !named(namespaces, n.Namespace()) && !named(links, n.Link()) {
			continue
		}

		if err := network.RemoveNode(ctx, n); err != nil {
			return fmt.Errorf("disconnect: %w", err)
		}
	}

	if err := network.RemoveBridge(ctx); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}

	return nil
}

func named(paths []string, name string) bool {
	for _, path := range paths {
		if strings.HasSuffix(path, "/"+name) {
			return true
		}
	}

	return false
}
