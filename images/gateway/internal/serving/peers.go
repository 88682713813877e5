package serving

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/deckhouse/system-s3/images/gateway/internal/volume"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/names"
)

const (
	// rollCall is how often Garage is asked who the replicas are; it spends 20 ms of CPU on the answer.
	rollCall = 10 * time.Second
	// peerTimeout is what a gateway gets to tell its volume.
	peerTimeout = time.Second
	maxVolume   = 4 << 10 // bytes of its answer
)

// neighbours are the gateways of the other replicas. Garage knows of their volumes, too, but up to ten seconds late,
// which is enough to fill one. It is for one goroutine.
type neighbours struct {
	garage *garage.Client
	http   *http.Client
	token  string
	url    func(host string) string
	self   string // id of this gateway's own node, once it is known

	called time.Time
	nodes  []garage.NodeStatus
}

// newNeighbours trusts the CA of the serving certificate: all replicas serve the same.
func newNeighbours(c Config, client *garage.Client, ca *x509.CertPool, token string) *neighbours {
	return &neighbours{garage: client, token: token, url: c.PeerURL, http: &http.Client{
		Timeout: peerTimeout,
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: ca, ServerName: names.S3Host, MinVersion: tls.VersionTLS12},
			MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
		},
	}}
}

// spaces are the volumes of the replicas besides this one. Where a gateway does not answer, what Garage knows will do.
func (n *neighbours) spaces(ctx context.Context) ([]volume.Space, error) {
	if err := n.call(ctx); err != nil {
		return nil, err
	}
	var spaces []volume.Space
	for _, node := range n.nodes {
		if !node.IsUp || node.Addr == "" || node.ID == n.self {
			continue
		}
		told, err := n.ask(ctx, node.Addr)
		switch {
		case err == nil:
			spaces = append(spaces, told)
		case node.DataPartition != nil:
			spaces = append(spaces, volume.Space{
				Total: uint64(max(node.DataPartition.Total, 0)), Free: uint64(max(node.DataPartition.Available, 0)),
			})
		}
	}
	return spaces, nil
}

// call asks Garage who the replicas are, when it was not asked lately.
func (n *neighbours) call(ctx context.Context) error {
	if len(n.nodes) > 0 && time.Since(n.called) < rollCall {
		return nil
	}
	if n.self == "" {
		self, err := n.garage.GetSelf(ctx)
		if err != nil {
			return fmt.Errorf("ask Garage for its id: %w", err)
		}
		n.self = self
	}
	status, err := n.garage.GetClusterStatus(ctx)
	if err != nil {
		return fmt.Errorf("ask Garage for its nodes: %w", err)
	}
	n.nodes, n.called = status.Nodes, time.Now()
	return nil
}

func (n *neighbours) ask(ctx context.Context, address string) (volume.Space, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return volume.Space{}, fmt.Errorf("read the address of a replica: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url(host)+"/gateway/v1/volume", http.NoBody)
	if err != nil {
		return volume.Space{}, fmt.Errorf("ask a replica: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+n.token)
	response, err := n.http.Do(request)
	if err != nil {
		return volume.Space{}, fmt.Errorf("ask a replica: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it is read to its end
	var status volume.Status
	if response.StatusCode != http.StatusOK {
		return volume.Space{}, fmt.Errorf("ask a replica: status %d", response.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxVolume)).Decode(&status); err != nil {
		return volume.Space{}, fmt.Errorf("read the volume of a replica: %w", err)
	}
	return status.Space, nil
}
