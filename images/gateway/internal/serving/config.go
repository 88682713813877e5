// Package serving is the running gateway: its two TLS ports, what it watches, and how it stops.
package serving

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/deckhouse/system-s3/lib/names"
)

// Limits of every connection.
const (
	idleTimeout = 5 * time.Minute
	maxHeader   = 64 << 10
	// adminConnections is for the kubelet, the controller and whoever looks.
	adminConnections = 256
	// metricsConnections is for a few who scrape.
	metricsConnections = 16
)

// Config is where the gateway listens, what it reads and whom it asks. Default fills it for a Garage Pod.
type Config struct {
	S3Address    string // host:port of the S3 port
	AdminAddress string // host:port of the admin port
	Metrics      string // host:port of the metrics
	TLSDir       string // Secret tls: ca.crt, tls.crt, tls.key
	RingFile     string // key ring
	PlaneDir     string // Secret of the plane: seed, admin-token
	VolumeDir    string // on the volume that Garage lives on
	GarageS3     string // URL of Garage's S3 API
	GarageAdmin  string // URL of Garage's admin API
	STS          string // URL of the STS service

	Epoch  int  // of the plane that this replica runs in
	Member bool // the replica has a role in Garage

	ClusterDomain string // the S3 host is known with and without it

	PeersPeriod    time.Duration            // how often the gateways of the other replicas are asked for their volumes
	PeerURL        func(host string) string // URL of the admin port of the gateway on a host
	ReloadPeriod   time.Duration            // how often the key ring and the certificate are looked at
	MaxConnections int                      // of the S3 port; idle ones make room for more
	HeaderTimeout  time.Duration            // what a client gets for the head of a request, and for the handshake before the first
	GaragePatience time.Duration            // how long requests wait for a Garage that is being restarted
	AnswerTimeout  time.Duration            // what Garage gets for an answer, or to take a piece of a request
	StallTimeout   time.Duration            // a request on which too little moves for so long is given up
	DrainDelay     time.Duration            // from the signal to stop until no new connection is accepted
	DrainTimeout   time.Duration            // what running requests get from then on

	Now func() time.Time
	Log *zap.Logger
}

// Default is the configuration of a gateway in a Garage Pod.
func Default() Config {
	return Config{
		S3Address:     fmt.Sprintf(":%d", names.GatewayS3Port),
		AdminAddress:  fmt.Sprintf(":%d", names.GatewayAdminPort),
		Metrics:       fmt.Sprintf(":%d", names.MetricsPort),
		TLSDir:        "/etc/system-s3/tls",
		RingFile:      "/etc/system-s3/key-ring/" + names.KeyRingKey,
		PlaneDir:      "/etc/system-s3/plane",
		VolumeDir:     "/var/lib/garage",
		GarageS3:      fmt.Sprintf("http://127.0.0.1:%d", names.GarageS3Port),
		GarageAdmin:   fmt.Sprintf("http://127.0.0.1:%d", names.GarageAdminPort),
		STS:           names.STSURL,
		Epoch:         1,
		Member:        true,
		ClusterDomain: "cluster.local",
		PeersPeriod:   time.Second,
		PeerURL: func(host string) string {
			return "https://" + net.JoinHostPort(host, strconv.Itoa(names.GatewayAdminPort))
		},
		ReloadPeriod:   5 * time.Second,
		MaxConnections: 4096,
		HeaderTimeout:  10 * time.Second,
		GaragePatience: garagePatience,
		AnswerTimeout:  answerTimeout,
		StallTimeout:   time.Minute,
		DrainDelay:     3 * time.Second,
		DrainTimeout:   50 * time.Second,
		Now:            time.Now,
		Log:            zap.NewNop(),
	}
}

// domains are the S3 hosts whose subdomains are buckets.
func (c Config) domains() []string {
	domains := []string{names.S3Host}
	if c.ClusterDomain != "" {
		domains = append(domains, names.S3Host+"."+c.ClusterDomain)
	}
	return domains
}

// urls are the services behind the gateway.
type urls struct{ s3, admin, sts *url.URL }

func (c Config) parseURLs() (urls, error) {
	var errs []error
	parse := func(what, text string) *url.URL {
		parsed, err := url.Parse(text)
		if err == nil && parsed.Host == "" {
			err = errors.New("it has no host")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("parse the URL of %s: %w", what, err))
		}
		return parsed
	}
	u := urls{s3: parse("Garage's S3", c.GarageS3), admin: parse("Garage's admin API", c.GarageAdmin), sts: parse("STS", c.STS)}
	return u, errors.Join(errs...)
}
