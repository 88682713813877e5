// Package network lays the cables of the sandbox: one bridge on the machine, and
// for each node a network namespace with a cable to the bridge.
package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
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
	there, present := bridgeOwner(ctx)
	if there != "" && there != owner {
		return fmt.Errorf("bridge %s is that of %s: %w", address.Bridge, there, errForeignBridge)
	}

	if !present {
		if err := command.Quick(ctx, "ip", "link", "add", address.Bridge, "type", "bridge"); err != nil {
			return fmt.Errorf("make the bridge: %w", err)
		}
	}

	for _, args := range [][]string{
		{"ip", "link", "set", address.Bridge, "alias", owner},
		{"ip", "link", "set", address.Bridge, "up"},
		{"ip", "address", "replace", address.HostPrefix, "dev", address.Bridge},
	} {
		if err := command.Quick(ctx, args[0], args[1:]...); err != nil {
			return fmt.Errorf("set up the bridge: %w", err)
		}
	}

	return allowForwarding(ctx)
}

// foreign tells whether the network is another sandbox's.
func foreign(ctx context.Context, owner string) bool {
	there, _ := bridgeOwner(ctx)

	return there != "" && there != owner
}

// Owned tells whether there is a bridge and it is the owner's.
func Owned(ctx context.Context, owner string) bool {
	there, _ := bridgeOwner(ctx)

	return there == owner
}

// bridgeOwner reads who is written on the bridge, and whether there is one. A kill
// right after the making of the bridge leaves one without an owner.
func bridgeOwner(ctx context.Context) (string, bool) {
	shown, err := command.Output(ctx, "ip", "-details", "link", "show", address.Bridge)

	return parseAlias(shown), err == nil
}

// parseAlias finds the alias in what "ip link show" prints.
func parseAlias(shown string) string {
	for line := range strings.Lines(shown) {
		if alias, ok := strings.CutPrefix(strings.TrimSpace(line), "alias "); ok {
			return alias
		}
	}

	return ""
}

// forwardRule lets frames cross the bridge where a firewall drops what is
// forwarded, as Docker's does.
func forwardRule() []string {
	return []string{"FORWARD", "-i", address.Bridge, "-o", address.Bridge, "-j", "ACCEPT"}
}

func allowForwarding(ctx context.Context) error {
	if command.Quick(ctx, "iptables", append([]string{"-w", "-C"}, forwardRule()...)...) == nil {
		return nil
	}

	if err := command.Quick(ctx, "iptables", append([]string{"-w", "-I"}, forwardRule()...)...); err != nil {
		return fmt.Errorf("allow forwarding over the bridge: %w", err)
	}

	return nil
}

// Remove takes away everything of the network of the owner's sandbox, also what no
// node is known for: a kill may have come between the making of a cable and that of
// anything else. What is not there is no error; another sandbox's network stays.
func Remove(ctx context.Context, owner string) error {
	if foreign(ctx, owner) {
		return nil
	}

	links, err := names()
	if err != nil {
		return err
	}

	var failed []error

	for number := 1; number <= address.MaxNode; number++ {
		n := address.Node{Number: number}
		if slices.Contains(links, n.Link()) || exists(n.Namespace()) {
			failed = append(failed, disconnect(ctx, n))
		}
	}

	if slices.Contains(links, address.Bridge) {
		failed = append(failed, removeBridge(ctx))
	}

	return errors.Join(failed...)
}

// names lists the links of the machine.
func names() ([]string, error) {
	links, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the links: %w", err)
	}

	all := make([]string, 0, len(links))
	for _, link := range links {
		all = append(all, link.Name)
	}

	return all, nil
}

// removeBridge takes the bridge and its rule away. The bridge goes last: it tells
// whose the rest is.
func removeBridge(ctx context.Context) error {
	rule := append([]string{"-w", "-D"}, forwardRule()...)
	for command.Quick(ctx, "iptables", rule...) == nil {
		continue
	}

	return errors.Join(releaseNamespaces(), removeLink(ctx, address.Bridge))
}

// EnsureNode makes the namespace of a node with its cable. Whatever is half there
// from a killed run is thrown away first.
func EnsureNode(ctx context.Context, n address.Node) error {
	if complete(ctx, n) {
		return nil
	}

	if err := disconnect(ctx, n); err != nil {
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
		if err := command.Quick(ctx, step[0], step[1:]...); err != nil {
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

// RemoveNode takes the namespace and the cable of a node of the owner's sandbox away;
// what is not there is no error. The processes in it must be gone before.
func RemoveNode(ctx context.Context, owner string, n address.Node) error {
	if foreign(ctx, owner) {
		return nil
	}

	return disconnect(ctx, n)
}

func disconnect(ctx context.Context, n address.Node) error {
	if err := removeLink(ctx, n.Link()); err != nil {
		return err
	}

	if !exists(n.Namespace()) {
		return nil
	}

	if err := command.Quick(ctx, "ip", "netns", "delete", n.Namespace()); err != nil {
		return fmt.Errorf("remove the namespace: %w", err)
	}

	return nil
}

// Connected tells whether the node has its namespace.
func Connected(n address.Node) bool { return exists(n.Namespace()) }

func removeLink(ctx context.Context, name string) error {
	there, err := names()
	if err != nil || !slices.Contains(there, name) {
		return err
	}

	if err := command.Quick(ctx, "ip", "link", "delete", name); err != nil {
		return fmt.Errorf("remove the link: %w", err)
	}

	return nil
}

// exists tells whether there is a namespace of the name, or what is left of one.
func exists(namespace string) bool {
	_, err := os.Lstat(filepath.Join(namespaces, namespace))

	return err == nil
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
	if err := command.Quick(ctx, "ip", slices.Concat(where, []string{"route", "replace", to, "via", via})...); err != nil {
		return fmt.Errorf("route: %w", err)
	}

	return nil
}

// releaseNamespaces undoes the self-mount that "ip netns" made for its folder,
// once no namespace of anybody is left in it.
func releaseNamespaces() error {
	if left, err := os.ReadDir(namespaces); err != nil || len(left) > 0 {
		return nil //nolint:nilerr // no folder, or not ours to clean
	}

	if err := unix.Unmount(namespaces, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmount %s: %w", namespaces, err)
	}

	_ = unix.Rmdir(namespaces)

	return nil
}
