package garage

import (
	"context"
	"fmt"
	"net/url"
)

// Health is connectivity as the answering node sees it. It says nothing about data being re-replicated.
type Health struct {
	Status           string `json:"status"` // healthy, degraded (write quorum is there) or unavailable
	KnownNodes       int    `json:"knownNodes"`
	ConnectedNodes   int    `json:"connectedNodes"`
	StorageNodes     int    `json:"storageNodes"`
	StorageNodesUp   int    `json:"storageNodesUp"`
	Partitions       int    `json:"partitions"`
	PartitionsQuorum int    `json:"partitionsQuorum"`
	PartitionsAllOK  int    `json:"partitionsAllOk"`
}

// Healthy tells whether all storage nodes of the layout are connected.
func (h Health) Healthy() bool { return h.Status == "healthy" }

// Available tells whether reads and writes have their quorum.
func (h Health) Available() bool { return h.Status == "healthy" || h.Status == "degraded" }

// Status is the cluster as the answering node sees it.
type Status struct {
	LayoutVersion int          `json:"layoutVersion"`
	Nodes         []NodeStatus `json:"nodes"`
}

// NodeStatus is one node of the cluster.
type NodeStatus struct {
	ID                string     `json:"id"`            // 64 hexadecimal digits
	GarageVersion     string     `json:"garageVersion"` // empty while the node was never heard of
	Addr              string     `json:"addr"`          // host:port of its RPC; empty when unknown
	Hostname          string     `json:"hostname"`
	IsUp              bool       `json:"isUp"`
	Draining          bool       `json:"draining"`
	DataPartition     *FreeSpace `json:"dataPartition"` // nil when unknown
	MetadataPartition *FreeSpace `json:"metadataPartition"`
}

// FreeSpace of a volume, in bytes.
type FreeSpace struct {
	Available int64 `json:"available"`
	Total     int64 `json:"total"`
}

// Up is the set of ids of nodes that are up.
func (s Status) Up() map[string]bool {
	up := make(map[string]bool, len(s.Nodes))
	for _, node := range s.Nodes {
		if node.IsUp {
			up[node.ID] = true
		}
	}
	return up
}

// GetClusterHealth reads the cluster's connectivity.
func (c *Client) GetClusterHealth(ctx context.Context) (Health, error) {
	var answer Health
	return answer, c.read(ctx, "GetClusterHealth", nil, &answer)
}

// GetClusterStatus reads the list of nodes.
func (c *Client) GetClusterStatus(ctx context.Context) (Status, error) {
	var answer Status
	return answer, c.read(ctx, "GetClusterStatus", nil, &answer)
}

// GetSelf reads the id of the answering node.
func (c *Client) GetSelf(ctx context.Context) (string, error) {
	var answer struct {
		Success map[string]struct{} `json:"success"`
	}
	const call = "GetNodeInfo"
	if err := c.read(ctx, call, url.Values{"node": {"self"}}, &answer); err != nil {
		return "", err
	}
	for id := range answer.Success {
		return id, nil
	}
	return "", fmt.Errorf("%s: the node does not tell its id", call)
}

// ConnectClusterNodes makes the answering node connect to peers, each `<id>@<host>:<port>`. The answer is one error a
// peer in the same order, nil where the connection stands; the second error is that of the call itself.
func (c *Client) ConnectClusterNodes(ctx context.Context, peers []string) ([]error, error) {
	var answer []struct {
		Success bool   `json:"success"`
		Error   string `json:"error"`
	}
	const call = "ConnectClusterNodes"
	if err := c.change(ctx, request{call: call, body: peers}, &answer); err != nil {
		return nil, err
	}
	if len(answer) != len(peers) {
		return nil, fmt.Errorf("%s: %d answers for %d peers", call, len(answer), len(peers))
	}
	failures := make([]error, len(peers))
	for i, each := range answer {
		if !each.Success {
			failures[i] = fmt.Errorf("connect to %s: %s", peers[i], each.Error)
		}
	}
	return failures, nil
}
