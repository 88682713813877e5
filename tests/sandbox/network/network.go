// Package network lays the cables of the sandbox: one bridge on the machine, and
// for each node a network namespace with a cable to the bridge.
package network

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/command"
)

const namespaces = "/run/netns"

var errForeignBridge = errors.New("the bridge belongs to another sandbox, take that one down first")

// EnsureBridge makes the bridge. The owner is written on it: two sandboxes on one
// machine would share addresses, so the second is refused.
func EnsureBridge(ctx context.Context, owner string) error {
	shown, err := command.Output(ctx, "ip", "-details", "link", "show", address.Bridge)
	if err == nil {
		if !strings.Contains(shown, "alias "+owner+"\n") && strings.Contains(shown, "alias ") {
			return fmt.Errorf("bridge %s: %w", address.Bridge, errForeignBridge)
		}
	} else if err := command.Run(ctx, "ip", "link", "add", address.Bridge, "type", "bridge"); err != nil {
		return fmt.Errorf("make the bridge: %w", err)
	}

	for _, args := range [][]string{
		{"ip", "link", "set", address.Bridge, "alias", owner},
		{"ip", "link", "set", address.Bridge, "up"},
		{"ip", "address", "replace", address.HostPrefix, "dev", address.Bridge},
	} {
		if err := command.Run(ctx, args[0], args[1:]...); err != nil {
			return fmt.Errorf("set up the bridge: %w", err)
		}
	}

	return allowForwarding(ctx)
}

// forwardRule lets frames cross the bridge where a firewall drops what is
// forwarded, as Docker's does.
func forwardRule() []string {
	return []string{"FORWARD", "-i", address.Bridge, "-o", address.Bridge, "-j", "ACCEPT"}
}

func allowForwarding(ctx context.Context) error {
	if command.Run(ctx, "iptables", append([]string{"-w", "-C"}, forwardRule()...)...) == nil {
		return nil
	}

	if err := command.Run(ctx, "iptables", append([]string{"-w", "-I"}, forwardRule()...)...); err != nil {
		return fmt.Errorf("allow forwarding over the bridge: %w", err)
	}

	return nil
}

// RemoveBridge takes the bridge and its rule away; what is not there is no error.
func RemoveBridge(ctx context.Context) error {
	rule := append([]string{"-w", "-D"}, forwardRule()...)
	for command.Run(ctx, "iptables", rule...) == nil {
		continue
	}

	if err := removeLink(ctx, address.Bridge); err != nil {
		return err
	}

	return releaseNamespaces()
}

// EnsureNode makes the namespace of a node with its cable. Whatever is half there
// from a killed run is thrown away first.
func EnsureNode(ctx context.Context, n address.Node) error {
	if complete(ctx, n) {
		return nil
	}

	if err := RemoveNode(ctx, n); err != nil {
		return err
	}

	ns := n.Namespace()
	steps := [][]string{
		{"ip", "netns", "add", ns},
		{"ip", "-n", ns, "link", "set", "lo", "up"},
		{"ip", "link", "add", n.Link(), "type", "veth", "peer", "name", n.PeerLink()},
		{"ip", "link", "set", n.Link(), "master", address.Bridge, "up"},
		{"ip", "link", "set", n.PeerLink(), "netns", ns},
		{"ip", "-n", ns, "link", "set", n.PeerLink(), "name", "eth0"},
		{"ip", "-n", ns, "link", "set", "eth0", "up"},
		inside(ns, "sysctl", "-qw", "net.ipv4.ip_forward=1"),
		// Pods of one node reach each other's Services over the node's bridge.
		inside(ns, "sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=1"),
		// The address comes last: it is what tells a complete node.
		{"ip", "-n", ns, "address", "add", n.Prefix(), "dev", "eth0"},
	}

	for _, step := range steps {
		if err := command.Run(ctx, step[0], step[1:]...); err != nil {
			return fmt.Errorf("lay the cable of %s: %w", ns, err)
		}
	}

	return nil
}

func complete(ctx context.Context, n address.Node) bool {
	shown, err := command.Output(ctx, "ip", "-n", n.Namespace(), "-4", "address", "show", "dev", "eth0")

	return err == nil && strings.Contains(shown, n.Prefix())
}

func inside(ns string, args ...string) []string {
	return append([]string{"nsenter", "--net=" + filepath.Join(namespaces, ns), "--"}, args...)
}

// RemoveNode takes the namespace and the cable of a node away; what is not there
// is no error. The processes in it must be gone before.
func RemoveNode(ctx context.Context, n address.Node) error {
	if err := removeLink(ctx, n.Link()); err != nil {
		return err
	}

	if _, err := os.Stat(filepath.Join(namespaces, n.Namespace())); err != nil {
		return nil //nolint:nilerr // not there: nothing to do
	}

	if err := command.Run(ctx, "ip", "netns", "delete", n.Namespace()); err != nil {
		return fmt.Errorf("remove the namespace: %w", err)
	}

	return nil
}

func removeLink(ctx context.Context, name string) error {
	if command.Run(ctx, "ip", "link", "show", name) != nil {
		return nil
	}

	if err := command.Run(ctx, "ip", "link", "delete", name); err != nil {
		return fmt.Errorf("remove the link: %w", err)
	}

	return nil
}

// EnsureRoutes tells each node, and the machine itself, where the Pods of every
// node are. The machine reaches Services through the first node, whose kube-proxy
// answers for them.
func EnsureRoutes(ctx context.Context, nodes []address.Node) error {
	for _, to := range nodes {
		if err := route(ctx, nil, to.Pods(), to.IP()); err != nil {
			return err
		}

		for _, from := range nodes {
			if from == to {
				continue
			}

			if err := route(ctx, []string{"-n", from.Namespace()}, to.Pods(), to.IP()); err != nil {
				return err
			}
		}
	}

	if len(nodes) > 0 {
		return route(ctx, nil, address.Services, nodes[0].IP())
	}

	return nil
}

func route(ctx context.Context, where []string, to, via string) error {
	args := append(where, "route", "replace", to, "via", via) //nolint:gocritic // where is a fresh slice or nil
	if err := command.Run(ctx, "ip", args...); err != nil {
		return fmt.Errorf("route: %w", err)
	}

	return nil
}

// releaseNamespaces undoes the self-mount that "ip netns" made for its folder,
// once no namespace of anybody is left in it.
func releaseNamespaces() error {
	left, err := os.ReadDir(namespaces)
	if err != nil || len(left) > 0 {
		return nil //nolint:nilerr // no folder, or not ours to clean
	}

	if err := unix.Unmount(namespaces, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmount %s: %w", namespaces, err)
	}

	_ = unix.Rmdir(namespaces)

	return nil
}
