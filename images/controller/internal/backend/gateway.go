package backend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/deckhouse/system-s3/lib/names"
)

// Address is where a replica answers.
type Address struct {
	Admin string // URL of the admin port
	S3    string // URL of the S3 port
	RPC   string // host and port of Garage's own protocol, as its peers reach it
}

// Gateways reaches replicas through their gateways, by Pod IP: a change must not land on whichever replica a Service
// picks. Safe for concurrent use.
type Gateways struct {
	mu     sync.Mutex
	ca     string
	client *http.Client
}

// Address is where the gateway of a Pod with the IP answers.
func (*Gateways) Address(podIP string) Address {
	join := func(port int) string { return net.JoinHostPort(podIP, strconv.Itoa(port)) }
	return Address{
		Admin: "https://" + join(names.GatewayAdminPort),
		S3:    "https://" + join(names.GatewayS3Port),
		RPC:   join(names.GarageRPCPort),
	}
}

const (
	dialTimeout = 5 * time.Second
	idleTimeout = 90 * time.Second

	// idleConnections to a replica stay open: the copies of a migration would dial anew with nearly each object.
	idleConnections = 64
	// bufferSize of a connection, in bytes: fewer and larger TLS records.
	bufferSize = 32 << 10
)

var errNoCA = errors.New("the Secret tls has no CA certificate")

// Client is an HTTP client that trusts the CA and nobody else. The same CA gives the same client, whose connections
// are reused.
func (g *Gateways) Client(ca string) (*http.Client, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.client != nil && g.ca == ca {
		return g.client, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		return nil, errNoCA
	}
	if g.client != nil {
		g.client.CloseIdleConnections()
	}
	g.ca, g.client = ca, &http.Client{Transport: &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: pool, ServerName: names.S3Host, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     idleTimeout,
		MaxIdleConnsPerHost: idleConnections,
		ReadBufferSize:      bufferSize,
		WriteBufferSize:     bufferSize,
		ForceAttemptHTTP2:   true,
	}}
	return g.client, nil
}

// S3 is a client of the replica's S3 with the plane's internal key.
func S3(url, keyID, secret string, client *http.Client) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(url), Region: names.GarageRegion, UsePathStyle: true, HTTPClient: client,
		Credentials: credentials.NewStaticCredentialsProvider(keyID, secret, ""),
	})
}

// Space of a volume, in bytes.
type Space struct {
	Total int64 `json:"total"`
	Free  int64 `json:"free"`
	// Content names what is on the volume; empty when the gateway is too old to tell.
	Content string `json:"content"`
}

const maxVolumeAnswer = 4 << 10 // bytes

// Volume asks a gateway for its measurement of the volume, which works while Garage cannot even start.
func Volume(ctx context.Context, client *http.Client, adminURL, token string) (Space, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, adminURL+"/gateway/v1/volume", http.NoBody)
	if err != nil {
		return Space{}, fmt.Errorf("ask for the volume: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	if err != nil {
		return Space{}, fmt.Errorf("ask for the volume: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return Space{}, fmt.Errorf("ask for the volume: HTTP %d", response.StatusCode)
	}
	var space Space
	if err := json.NewDecoder(io.LimitReader(response.Body, maxVolumeAnswer)).Decode(&space); err != nil {
		return Space{}, fmt.Errorf("decode the volume's space: %w", err)
	}
	return space, nil
}
