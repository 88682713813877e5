package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
	"github.com/deckhouse/system-s3/tests/sandbox/command"
	"github.com/deckhouse/system-s3/tests/sandbox/controlplane"
	"github.com/deckhouse/system-s3/tests/sandbox/network"
	"github.com/deckhouse/system-s3/tests/sandbox/node"
	"github.com/deckhouse/system-s3/tests/sandbox/process"
	"github.com/deckhouse/system-s3/tests/sandbox/provisioner"
)

var errNotRoot = errors.New("the sandbox makes network namespaces and mounts: run it as root")

// Up brings the cluster up, or what is missing of it, waits until all nodes are ready
// and DNS answers, and then does the further work. No other command changes the
// sandbox meanwhile.
func (c Cluster) Up(ctx context.Context, o Options, further func(context.Context) error) error {
	if os.Geteuid() != 0 {
		return errNotRoot
	}

	unlock, err := c.Dir.Lock(ctx, c.Progress)
	if err != nil {
		return fmt.Errorf("bring up: %w", err)
	}
	defer unlock()

	if err := c.rememberKernel(); err != nil {
		return err
	}

	if o, err = c.remember(o); err != nil {
		return err
	}

	existing, err := c.nodes()
	if err != nil {
		return err
	}

	nodes, err := o.wanted(existing)
	if err != nil {
		return err
	}

	if err := c.up(ctx, o, nodes); err != nil {
		return err
	}

	return further(ctx)
}

func (c Cluster) up(ctx context.Context, o Options, nodes []node.Node) error {
	binary, err := c.Store.Ensure(ctx, artifact.Kubernetes())
	if err != nil {
		return fmt.Errorf("build Kubernetes: %w", err)
	}

	plane := controlplane.ControlPlane{Dir: c.Dir, Processes: c.Processes, Kubernetes: binary}
	runner := c.runner(binary)

	var found images

	for _, s := range []struct {
		what string
		work func(context.Context) error
	}{
		{"network", func(ctx context.Context) error { return c.network(ctx, nodes) }},
		{"registry", c.registry},
		{"images of the cluster", func(ctx context.Context) (err error) { found, err = c.images(ctx); return err }},
		{"control plane", plane.Up},
		{"storage", c.storage},
		{"nodes", func(ctx context.Context) error {
			runner.PauseImage = found.pause

			return startAll(ctx, runner, nodes)
		}},
		{"nodes ready", func(ctx context.Context) error { return c.admit(ctx, nodes, o) }},
		{"DNS", func(ctx context.Context) error { return c.dns(ctx, binary, found.coreDNS) }},
	} {
		if err := c.Step(ctx, s.what, s.work); err != nil {
			return err
		}
	}

	return nil
}

func (c Cluster) runner(binary string) node.Runner {
	return node.Runner{Dir: c.Dir, Processes: c.Processes, Kubernetes: binary}
}

// network connects the nodes that are new and tells all the ways to each other.
func (c Cluster) network(ctx context.Context, nodes []node.Node) error {
	if _, err := os.Stat("/proc/sys/net/bridge"); err != nil {
		if err := command.Quick(ctx, "modprobe", "br_netfilter"); err != nil {
			return fmt.Errorf("let iptables see bridged traffic: %w", err)
		}
	}

	if err := network.EnsureBridge(ctx, string(c.Dir)); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}

	for _, n := range nodes {
		if err := os.MkdirAll(c.Dir.Node(n.Name), 0o700); err != nil {
			return fmt.Errorf("make the folder of %s: %w", n.Name, err)
		}

		if err := network.EnsureNode(ctx, n.Address); err != nil {
			return fmt.Errorf("connect %s: %w", n.Name, err)
		}
	}

	connected, err := c.connected()
	if err != nil {
		return err
	}

	if err := network.EnsureRoutes(ctx, connected); err != nil {
		return fmt.Errorf("routes: %w", err)
	}

	return nil
}

func startAll(ctx context.Context, r node.Runner, nodes []node.Node) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range nodes {
		group.Go(func() error { return r.Start(ctx, n) })
	}

	return group.Wait()
}

// registry starts the image registry: this very program in another role.
func (c Cluster) registry(ctx context.Context) error {
	return c.self(ctx, "registry", "--address", address.Registry())
}

// storage starts the provisioner and creates its StorageClasses.
func (c Cluster) storage(ctx context.Context) error {
	client, err := controlplane.Client(c.Dir)
	if err != nil {
		return fmt.Errorf("storage: %w", err)
	}

	if err := provisioner.EnsureClasses(ctx, client); err != nil {
		return fmt.Errorf("storage: %w", err)
	}

	return c.self(ctx, "provisioner")
}

// self starts this program in the background with the verb "serve <role>".
func (c Cluster) self(ctx context.Context, role string, args ...string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}

	spec := process.Spec{Name: role, Args: append([]string{program, "serve", role, "--dir", string(c.Dir)}, args...)}
	if err := c.Processes.Start(ctx, spec); err != nil {
		return fmt.Errorf("start the %s: %w", role, err)
	}

	return nil
}
