// Package address is the address plan of the sandbox: which network each part
// has. It is pure: it computes addresses and touches nothing.
package address

import (
	"fmt"
	"net"
	"strconv"
)

// Networks of the sandbox. They are private ranges that neither Docker nor the
// usual cluster installers take by default, so the sandbox can stand beside them.
const (
	// Bridge is the name of the bridge that all nodes hang on.
	Bridge = "s3sb0"
	// Host is the address of the bridge on the machine itself: the API server,
	// the registry and everything else that is not on a node answers there.
	Host = "10.211.0.1"
	// HostPrefix is Host with the prefix length of the network of the nodes.
	HostPrefix = Host + "/24"
	// Pods is the network of all Pods; each node has one /24 of it.
	Pods = "10.212.0.0/16"
	// Services is the network of ClusterIPs.
	Services = "10.213.0.0/16"
	// APIService is the ClusterIP of the Service "kubernetes".
	APIService = "10.213.0.1"
	// DNSService is the ClusterIP of the Service "kube-dns".
	DNSService = "10.213.0.10"
	// ClusterDomain is the DNS domain of the cluster.
	ClusterDomain = "cluster.local"
	// APIPort is the TCP port of the API server on Host.
	APIPort = 6443
	// RegistryPort is the TCP port of the image registry on Host.
	RegistryPort = 5000
	// MaxNode is the highest node number that the networks have room for.
	MaxNode = 200
)

const firstNode = 10

// APIServer is the URL of the API server.
func APIServer() string {
	return "https://" + net.JoinHostPort(Host, strconv.Itoa(APIPort))
}

// Registry is host:port of the image registry.
func Registry() string {
	return net.JoinHostPort(Host, strconv.Itoa(RegistryPort))
}

// Node holds the addresses of one node.
type Node struct {
	// Number is the place of the node in the plan, from 1.
	Number int
}

// NewNode returns the addresses of the node with the given number. It fails when
// the number is outside 1..MaxNode.
func NewNode(number int) (Node, error) {
	if number < 1 || number > MaxNode {
		return Node{}, fmt.Errorf("node number %d is outside 1..%d", number, MaxNode)
	}

	return Node{Number: number}, nil
}

// IP is the address of the node.
func (n Node) IP() string {
	return fmt.Sprintf("10.211.0.%d", firstNode+n.Number)
}

// Prefix is IP with the prefix length of the network of the nodes.
func (n Node) Prefix() string {
	return n.IP() + "/24"
}

// Pods is the network of the Pods of the node.
func (n Node) Pods() string {
	return fmt.Sprintf("10.212.%d.0/24", n.Number)
}

// Namespace is the name of the network namespace of the node.
func (n Node) Namespace() string {
	return fmt.Sprintf("s3sb-%d", n.Number)
}

// Link is the name of the machine's end of the node's cable.
func (n Node) Link() string {
	return fmt.Sprintf("s3sb-v%d", n.Number)
}

// PeerLink is the name of the node's end of the cable until it is moved into the
// namespace, where it becomes eth0.
func (n Node) PeerLink() string {
	return fmt.Sprintf("s3sb-p%d", n.Number)
}
