package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	headerTimeout  = 5 * time.Second
	requestTimeout = 15 * time.Second
	idleTimeout    = 30 * time.Second // clients come back after minutes
	maxHeader      = 64 << 10         // bytes: a GET query carries the token in the request line

	// maxConnections bounds the memory that strangers can take: a connection costs some 30 KiB, and one that does not send
	// its request is closed after headerTimeout.
	maxConnections = 2048
)

// tlsServer serves STS, or the status page, on every replica. It starts to listen once the caches are filled, so that
// nobody is told that a SystemBucket does not exist only because it was not read yet.
type tlsServer struct {
	name        string
	address     string
	connections int // at once, at most
	handler     http.Handler
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	ready       chan struct{} // closed when it listens
}

var errNotListening = errors.New("it does not listen yet")

func (s *tlsServer) check() error {
	select {
	case <-s.ready:
		return nil
	default:
		return errNotListening
	}
}

// NeedLeaderElection is false: every replica answers.
func (*tlsServer) NeedLeaderElection() bool { return false }

// Start serves until the context ends, then lets running exchanges end.
func (s *tlsServer) Start(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("listen for %s: %w", s.name, err)
	}
	close(s.ready)
	server := &manager.Server{
		Name: s.name,
		Server: &http.Server{
			Handler: s.handler, MaxHeaderBytes: maxHeader,
			ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: idleTimeout,
			// Scanners and clients without our CA fail in the handshake all day long.
			ErrorLog: debugLog(log.FromContext(ctx)),
		},
		Listener: tls.NewListener(netutil.LimitListener(listener, s.connections), &tls.Config{
			GetCertificate: s.certificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		}),
		ShutdownTimeout: ptr.To(stopTimeout),
	}
	return server.Start(ctx) //nolint:wrapcheck // it is the manager's own
}
