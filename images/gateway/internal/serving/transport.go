package serving

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/deckhouse/system-s3/images/gateway/internal/upstream"
	"github.com/deckhouse/system-s3/lib/names"
)

const (
	dialTimeout = 2 * time.Second // Garage is on the same machine
	// garagePatience is how long requests wait for a Garage that is being restarted.
	garagePatience = 3 * time.Second
	// answerTimeout is what Garage gets from the last byte of a request to its answer. It is longer than Garage's own
	// timeout of an RPC, a minute, after which it answers 503 by itself.
	answerTimeout  = 2 * time.Minute
	expectTimeout  = time.Second
	idleConns      = 256
	idleGarage     = 4 * time.Minute
	transferBuffer = 64 << 10

	stsTimeout = 20 * time.Second
)

// consumersTransport carries consumers' requests to Garage.
func consumersTransport(garage *url.URL, c Config) *upstream.Transport {
	return &upstream.Transport{
		Address: garage.Host, DialTimeout: dialTimeout, Patience: c.GaragePatience, AnswerTimeout: c.AnswerTimeout, MaxIdle: idleConns,
	}
}

// garageTransport connects to Garage: no compression, so that bytes pass as they are, and enough idle connections that
// none is made anew under load.
func garageTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: time.Minute}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		DisableCompression:     true,
		MaxIdleConns:           idleConns,
		MaxIdleConnsPerHost:    idleConns,
		IdleConnTimeout:        idleGarage,
		ResponseHeaderTimeout:  answerTimeout,
		ExpectContinueTimeout:  expectTimeout,
		MaxResponseHeaderBytes: maxHeader,
		WriteBufferSize:        transferBuffer,
		ReadBufferSize:         transferBuffer,
	}
}

// stsTransport connects to the STS service and trusts our own CA only.
func stsTransport(tlsDir string) (*http.Transport, error) {
	data, err := fs.ReadFile(os.DirFS(tlsDir), names.CAKey)
	if err != nil {
		return nil, fmt.Errorf("read the CA certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, errors.New("read the CA certificate: there is none in the file")
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: time.Minute}
	return &http.Transport{
		DialContext:           dialer.DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: stsTimeout,
		IdleConnTimeout:       idleGarage,
		DisableCompression:    true,
	}, nil
}
