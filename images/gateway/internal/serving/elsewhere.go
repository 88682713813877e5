package serving

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/deckhouse/system-s3/images/gateway/internal/fence"
	"github.com/deckhouse/system-s3/images/gateway/internal/gate"
	"github.com/deckhouse/system-s3/lib/names"
)

const (
	// forwardPatience is how long a request waits for a connection to where the store has moved to.
	forwardPatience = 3 * time.Second
	forwardPause    = 100 * time.Millisecond
)

// elsewhere is the fence with the way to where the store has moved to.
type elsewhere struct {
	fence  *fence.Fence
	gate   *gate.Gate
	dialer tls.Dialer
}

// openElsewhere makes the gate do what the fence on the volume says.
func openElsewhere(dir string, g *gate.Gate, pool *x509.CertPool) (*elsewhere, error) {
	barrier, err := fence.Open(dir)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what it is
	}
	e := &elsewhere{barrier, g, tls.Dialer{
		NetDialer: &net.Dialer{Timeout: dialTimeout, KeepAlive: time.Minute},
		Config:    &tls.Config{RootCAs: pool, ServerName: names.S3Host, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
	}}
	e.tellGate()
	return e, nil
}

// State is the fence's.
func (e *elsewhere) State() fence.State { return e.fence.State() }

// To is where requests are forwarded to, empty while they are not.
func (e *elsewhere) To() string { return e.fence.State().To }

// Set fences for good, and forwards if it is told where to.
func (e *elsewhere) Set(to string) error {
	if err := e.fence.Set(to); err != nil {
		return err //nolint:wrapcheck // it is the answer
	}
	e.tellGate()
	return nil
}

func (e *elsewhere) tellGate() {
	switch state := e.fence.State(); {
	case state.To != "":
		e.gate.Move()
	case state.Fenced:
		e.gate.Fence()
	}
}

// transport makes a connection for every request, as its client will do after the answer: whether a connection that has
// been used still stands is known only after a body has been sent on it.
func (e *elsewhere) transport() *http.Transport {
	return &http.Transport{
		DialTLSContext:         e.dial,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		ResponseHeaderTimeout:  answerTimeout,
		ExpectContinueTimeout:  expectTimeout,
		MaxResponseHeaderBytes: maxHeader,
		WriteBufferSize:        transferBuffer,
		ReadBufferSize:         transferBuffer,
	}
}

// dial tries again for a while: nothing of the request has been sent yet.
func (e *elsewhere) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, forwardPatience)
	defer cancel()
	pause := time.NewTicker(forwardPause)
	defer pause.Stop()
	for {
		conn, err := e.dialer.DialContext(ctx, network, address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to %s: %w", address, err)
		case <-pause.C:
		}
	}
}

// Reach tells whether there is anybody.
func (e *elsewhere) Reach(ctx context.Context) error {
	to, err := url.Parse(e.To())
	if err != nil {
		return fmt.Errorf("reach where the store has moved to: %w", err)
	}
	conn, err := e.dialer.DialContext(ctx, "tcp", to.Host)
	if err != nil {
		return fmt.Errorf("reach where the store has moved to: %w", err)
	}
	return conn.Close() //nolint:wrapcheck // see above
}
