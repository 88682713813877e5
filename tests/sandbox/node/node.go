// Package node is one machine of the cluster: a network namespace with its own
// containerd, kubelet and kube-proxy, and its own disks.
package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/disk"
	"github.com/deckhouse/system-s3/tests/sandbox/network"
	"github.com/deckhouse/system-s3/tests/sandbox/pki"
	"github.com/deckhouse/system-s3/tests/sandbox/process"
	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

const (
	folderMode     = 0o700
	fileMode       = 0o600
	socketLimit    = 30 * time.Second
	socketInterval = 50 * time.Millisecond
)

var (
	namePattern = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?-([1-9][0-9]*)$`)
	errName     = errors.New("a node's name ends with its number, such as node-4")
)

// Node is one node of the cluster.
type Node struct {
	Name    string
	Address address.Node
}

// Parse makes a node out of its name. The number at the end of the name decides
// about its addresses.
func Parse(name string) (Node, error) {
	match := namePattern.FindStringSubmatch(name)
	if match == nil {
		return Node{}, fmt.Errorf("node %q: %w", name, errName)
	}

	number, err := strconv.Atoi(match[2])
	if err != nil {
		return Node{}, fmt.Errorf("node %q: %w", name, err)
	}

	where, err := address.NewNode(number)
	if err != nil {
		return Node{}, fmt.Errorf("node %q: %w", name, err)
	}

	return Node{Name: name, Address: where}, nil
}

// Runner starts and stops nodes.
type Runner struct {
	Dir       statedir.Dir
	Processes process.Table
	// Kubernetes is the path of the binary of all components.
	Kubernetes string
	// PauseImage is the reference of the image that holds a Pod's namespaces.
	PauseImage string
}

// Start makes the node if it is new, and starts what does not run of it. It does
// not wait for the node to become ready.
func (r Runner) Start(ctx context.Context, n Node) error {
	if err := network.EnsureNode(ctx, n.Address); err != nil {
		return fmt.Errorf("connect %s: %w", n.Name, err)
	}

	if err := r.prepare(n); err != nil {
		return fmt.Errorf("prepare %s: %w", n.Name, err)
	}

	if err := r.Processes.Start(ctx, r.containerd(n)); err != nil {
		return fmt.Errorf("start %s: %w", n.Name, err)
	}

	// The kubelet gives up when there is no runtime.
	if err := r.awaitRuntime(ctx, n); err != nil {
		return err
	}

	for _, spec := range []process.Spec{r.kubelet(n), r.proxy(n)} {
		if err := r.Processes.Start(ctx, spec); err != nil {
			return fmt.Errorf("start %s: %w", n.Name, err)
		}
	}

	return nil
}

// prepare writes the configuration and the certificates of the node.
func (r Runner) prepare(n Node) error {
	authority, err := pki.Open(r.Dir.PKI())
	if err != nil {
		return fmt.Errorf("open the authority: %w", err)
	}

	serving := pki.Identity{File: servingFile(n), Name: n.Name, Hosts: []string{n.Name, n.Address.IP()}}
	if err := authority.Issue(serving); err != nil {
		return fmt.Errorf("issue the kubelet's certificate: %w", err)
	}

	client := pki.Identity{File: clientFile(n), Name: "system:node:" + n.Name, Group: "system:nodes"}
	if err := authority.Kubeconfig(client, address.APIServer(), r.kubeconfig(n)); err != nil {
		return fmt.Errorf("write the kubelet's kubeconfig: %w", err)
	}

	for path, content := range map[string]string{
		r.Dir.Node(n.Name, "containerd.toml"):                           r.containerdConfig(n),
		r.Dir.Node(n.Name, "certs.d", address.Registry(), "hosts.toml"): hostsConfig(),
		r.Dir.Node(n.Name, "net.d", "10-sandbox.conflist"):              r.networkConfig(n),
		r.Dir.Node(n.Name, "resolv.conf"):                               "",
		r.Dir.Node(n.Name, "kubelet.yaml"):                              r.kubeletConfig(n, authority),
	} {
		if err := write(path, content); err != nil {
			return err
		}
	}

	return nil
}

func servingFile(n Node) string { return "kubelet-" + n.Name + "-serving" }

func clientFile(n Node) string { return "kubelet-" + n.Name }

func (r Runner) kubeconfig(n Node) string { return r.Dir.PKI("kubelet-" + n.Name + ".kubeconfig") }

func (r Runner) socket(n Node) string { return r.Dir.Node(n.Name, "containerd.sock") }

func (r Runner) awaitRuntime(ctx context.Context, n Node) error {
	answers := func(ctx context.Context) (bool, error) {
		var dialer net.Dialer

		connection, err := dialer.DialContext(ctx, "unix", r.socket(n))
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}

		return true, connection.Close()
	}

	if err := wait.PollUntilContextTimeout(ctx, socketInterval, socketLimit, true, answers); err != nil {
		return fmt.Errorf("containerd of %s does not answer, see %s: %w", n.Name, r.Dir.Log(n.Name+".containerd"), err)
	}

	return nil
}

// Stop switches the node off, as by its power button: every process of it ends at
// once, what was mounted or in memory is gone, its disks stay.
func (r Runner) Stop(ctx context.Context, n Node) error {
	if err := r.Processes.KillGroup(ctx, n.Name); err != nil {
		return fmt.Errorf("kill the processes of %s: %w", n.Name, err)
	}

	if err := killContainers(ctx, r.Dir.Node(n.Name)); err != nil {
		return fmt.Errorf("switch off %s: %w", n.Name, err)
	}

	for _, name := range []string{"containerd", "kubelet", "kube-proxy"} {
		if err := r.Processes.Stop(ctx, n.Name+"."+name, 0); err != nil {
			return fmt.Errorf("stop %s: %w", n.Name, err)
		}
	}

	if err := disk.UnmountBelow(r.Dir.Node(n.Name)); err != nil {
		return fmt.Errorf("unmount what %s had: %w", n.Name, err)
	}

	if err := os.RemoveAll(r.Dir.Node(n.Name, "run")); err != nil {
		return fmt.Errorf("clear the memory of %s: %w", n.Name, err)
	}

	if err := network.RemoveNode(ctx, string(r.Dir), n.Address); err != nil {
		return fmt.Errorf("disconnect %s: %w", n.Name, err)
	}

	return nil
}

// Lose stops the node for ever: its disks and everything else of it are deleted.
func (r Runner) Lose(ctx context.Context, n Node) error {
	if err := r.Stop(ctx, n); err != nil {
		return err
	}

	if err := disk.ReleaseBelow(ctx, r.Dir.Volumes(n.Name)); err != nil {
		return fmt.Errorf("release the disks of %s: %w", n.Name, err)
	}

	for _, path := range []string{r.Dir.Volumes(n.Name), r.Dir.Node(n.Name)} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("delete what %s had: %w", n.Name, err)
		}
	}

	return nil
}
