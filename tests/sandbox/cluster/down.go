package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/deckhouse/system-s3/tests/sandbox/disk"
	"github.com/deckhouse/system-s3/tests/sandbox/network"
	"github.com/deckhouse/system-s3/tests/sandbox/node"
)

// downLimit bounds each step of the removal.
const downLimit = 3 * time.Minute

var (
	errSlow    = errors.New("it takes too long")
	errMounted = errors.New("still mounted, nothing is deleted")
)

// removal is one step of "down".
type removal struct {
	what string
	work func(context.Context) error
}

// Down removes the whole sandbox, from whatever state it is in: every process,
// mount, loop device, namespace, link and file. Without a sandbox it does nothing.
// One step that fails does not keep the others from their work, but the files stay
// then: the next "down" goes by what is in them.
func (c Cluster) Down(ctx context.Context) error {
	if there, err := c.remains(ctx); err != nil || !there {
		return err
	}

	unlock, err := c.Dir.Lock(ctx, c.Progress)
	if err != nil {
		return fmt.Errorf("take down: %w", err)
	}
	defer unlock()

	var failed []error

	for _, r := range c.removals() {
		failed = append(failed, c.removeStep(ctx, r))
	}

	if err := errors.Join(failed...); err != nil {
		return err
	}

	return c.removeStep(ctx, removal{"files", func(context.Context) error { return c.removeFiles() }})
}

// remains tells whether there is anything of the sandbox. Somebody may have deleted
// its files under it.
func (c Cluster) remains(ctx context.Context) (bool, error) {
	if c.Dir.Exists() {
		return true, nil
	}

	running, err := c.Processes.Any()
	if err != nil {
		return false, fmt.Errorf("look for what is left: %w", err)
	}

	return running || network.Owned(ctx, string(c.Dir)), nil
}

// removals in the order in which they have to be: what runs holds mounts and
// namespaces, mounts hold loop devices, and loop devices hold files.
func (c Cluster) removals() []removal {
	return []removal{
		// All at once, and hard: there is nothing to save. That includes those that start
		// others again, so that nothing comes back meanwhile.
		{"processes", func(ctx context.Context) error { return c.Processes.KillGroup(ctx, "") }},
		{"nodes", c.stopAll},
		{"what the nodes left elsewhere", func(ctx context.Context) error { return node.Sweep(ctx, string(c.Dir)) }},
		{"mounts and loop devices", func(ctx context.Context) error {
			return errors.Join(disk.ReleaseBelow(ctx, string(c.Dir)), disk.AwaitFree(ctx, string(c.Dir)))
		}},
		{"network", func(ctx context.Context) error { return network.Remove(ctx, string(c.Dir)) }},
		{"kernel settings", func(context.Context) error { return c.restoreKernel() }},
	}
}

func (c Cluster) removeStep(ctx context.Context, r removal) error {
	ctx, cancel := context.WithTimeoutCause(ctx, downLimit, errSlow)
	defer cancel()

	return c.Step(ctx, "removing "+r.what, r.work)
}

func (c Cluster) stopAll(ctx context.Context) error {
	nodes, err := c.nodes()
	if err != nil {
		return err
	}

	runner := c.runner("")
	failed := make([]error, 0, len(nodes))

	for _, n := range nodes {
		failed = append(failed, runner.Stop(ctx, n))
	}

	return errors.Join(failed...)
}

// removeFiles deletes the state directory. A mount that is left below would be a way
// out of it: to a folder of the machine that a Pod has mounted, for one.
func (c Cluster) removeFiles() error {
	left, err := disk.Mounts(string(c.Dir))
	if err != nil {
		return fmt.Errorf("look for mounts: %w", err)
	}

	if len(left) > 0 {
		return fmt.Errorf("%s: %w", strings.Join(left, ", "), errMounted)
	}

	return c.Dir.Remove()
}
