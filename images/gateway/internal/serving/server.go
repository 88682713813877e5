package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/deckhouse/system-s3/images/gateway/internal/admin"
	"github.com/deckhouse/system-s3/images/gateway/internal/door"
	"github.com/deckhouse/system-s3/images/gateway/internal/gate"
	"github.com/deckhouse/system-s3/images/gateway/internal/journal"
	"github.com/deckhouse/system-s3/images/gateway/internal/metrics"
	"github.com/deckhouse/system-s3/images/gateway/internal/readiness"
	"github.com/deckhouse/system-s3/images/gateway/internal/revocation"
	"github.com/deckhouse/system-s3/images/gateway/internal/s3"
	"github.com/deckhouse/system-s3/images/gateway/internal/secret"
	"github.com/deckhouse/system-s3/images/gateway/internal/upstream"
	"github.com/deckhouse/system-s3/images/gateway/internal/volume"
	"github.com/deckhouse/system-s3/images/gateway/internal/wire"
	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/sigv4"
)

// Server is a gateway that listens.
type Server struct {
	config    Config
	ring      *secret.Watched[access.Ring]
	cert      *secret.Watched[tls.Certificate]
	readiness *readiness.Probe
	guard     *volume.Guard
	gate      *gate.Gate
	garage    *upstream.Transport // for consumers' requests
	transport *http.Transport     // for everything else

	meter              *metrics.Meter
	revoked            *revocation.List
	s3, admin, metrics port
}

// port is a listener and who serves it.
type port struct {
	listener net.Listener
	server   *http.Server
}

// Run serves until the context ends, then drains and returns.
func Run(ctx context.Context, c Config) error {
	s, err := New(ctx, c)
	if err != nil {
		return err
	}
	return s.Serve(ctx)
}

// New reads everything the gateway needs and opens its ports.
func New(ctx context.Context, c Config) (*Server, error) {
	urls, err := c.parseURLs()
	if err != nil {
		return nil, err
	}
	plane, err := secret.ReadPlane(c.PlaneDir)
	if err != nil {
		return nil, err
	}
	s := &Server{
		config: c, garage: consumersTransport(urls.s3, c), transport: garageTransport(),
		meter: metrics.NewMeter(), revoked: &revocation.List{},
	}
	if s.ring, err = secret.OpenRing(c.RingFile, c.Log); err != nil {
		return nil, err
	}
	s.cert, err = secret.OpenCertificate(filepath.Join(c.TLSDir, "tls.crt"), filepath.Join(c.TLSDir, "tls.key"), c.Log)
	if err != nil {
		return nil, err
	}
	toSTS, err := stsTransport(c.TLSDir)
	if err != nil {
		return nil, err
	}

	entrance, err := door.New(door.Config{Dir: c.VolumeDir, Epoch: c.Epoch, Member: c.Member, Now: c.Now})
	if err != nil {
		return nil, err
	}

	id, key := access.InternalKey(plane.Seed)
	signer := &sigv4.Signer{Endpoint: urls.s3, Region: names.GarageRegion, AccessKeyID: id, Secret: key}
	client := garage.New(c.GarageAdmin, plane.AdminToken, &http.Client{Transport: s.transport})
	s.readiness = s.probe(signer, client)
	s.readiness.Door = entrance
	peers := newNeighbours(c, client, toSTS.TLSClientConfig.RootCAs, plane.AdminToken)
	s.guard = &volume.Guard{
		Measure: func() (volume.Space, error) { return volume.Measure(c.VolumeDir) }, Peers: peers.spaces, Log: c.Log.Named("volume"),
	}
	s.gate = &gate.Gate{Space: s.guard}
	writes := &journal.Journal{}
	moved, err := openElsewhere(c.VolumeDir, s.gate, toSTS.TLSClientConfig.RootCAs)
	if err != nil {
		return nil, err
	}
	s.readiness.Elsewhere = moved
	s3Handler := s3.New(s3.Config{
		Region: names.Region, Domains: c.domains(), Ring: s.ring.Current, InternalID: id, InternalKey: key, Signer: signer,
		Transport: s.garage, Gate: s.gate, Door: entrance.Pass, Revoked: s.revoked, HasBucket: hasBucket(client), Meter: s.meter, Journal: writes,
		Elsewhere:    s3.Elsewhere{To: moved.To, Transport: moved.transport()},
		STS:          s3.NewSTS(urls.sts, toSTS, c.Log),
		StallTimeout: c.StallTimeout, Now: c.Now, Log: c.Log.Named("s3"),
	})
	adminHandler := admin.New(admin.Config{
		Token: plane.AdminToken, Garage: urls.admin, Transport: s.transport, Readiness: s.readiness,
		Idle: s.gate, Hold: s.gate, Space: s.guard, Content: func() string { return volume.Content(c.VolumeDir) },
		Revoked: s.revoked, Door: entrance, Journal: writes, Fence: moved, Log: c.Log.Named("admin"),
	})
	return s, s.listen(ctx, handlers{s3: s3Handler, admin: adminHandler, metrics: s.metricsHandler(plane.MetricsToken)})
}

// handlers of the ports.
type handlers struct{ s3, admin, metrics http.Handler }

func (s *Server) probe(signer *sigv4.Signer, client *garage.Client) *readiness.Probe {
	return &readiness.Probe{
		S3URL: s.config.GarageS3, Transport: s.transport, Signer: signer, Now: s.config.Now,
		HasLayout: func(ctx context.Context) (bool, error) {
			layout, err := client.GetClusterLayout(ctx)
			return layout.Version > 0, err
		},
	}
}

// hasBucket asks by the admin API, which answers with what a majority of the nodes says.
func hasBucket(client *garage.Client) func(context.Context, string) (bool, error) {
	return func(ctx context.Context, bucket string) (bool, error) {
		_, err := client.GetBucketByAlias(ctx, bucket)
		if garage.IsAbsent(err) {
			return false, nil
		}
		return err == nil, err
	}
}

func (s *Server) listen(ctx context.Context, h handlers) error {
	for _, each := range []struct {
		into        *port
		address     string
		connections int
		handler     http.Handler
	}{
		{&s.s3, s.config.S3Address, s.config.MaxConnections, h.s3},
		{&s.admin, s.config.AdminAddress, adminConnections, h.admin},
		{&s.metrics, s.config.Metrics, metricsConnections, h.metrics},
	} {
		var err error
		if *each.into, err = s.open(ctx, each.address, each.connections, each.handler); err != nil {
			return errors.Join(err, s.closePorts())
		}
	}
	return nil
}

func (s *Server) closePorts() error {
	var errs []error
	for _, p := range s.ports() {
		if p.listener != nil {
			errs = append(errs, p.listener.Close())
		}
	}
	return errors.Join(errs...)
}

// ports in the order in which they close at the end of a drain. The admin port goes last: Garage's preStop hook waits
// there for the end of the drain.
func (s *Server) ports() []port { return []port{s.s3, s.metrics, s.admin} }

// open listens with TLS. HTTP/2 is left out on purpose: a connection per request moves large bodies faster.
func (s *Server) open(ctx context.Context, address string, connections int, handler http.Handler) (port, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return port{}, fmt.Errorf("listen on %s: %w", address, err)
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	secured := &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			cert := s.cert.Current()
			return &cert, nil
		},
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		// Small first records help interactive pages; here they only cost.
		DynamicRecordSizingDisabled: true,
	}
	wired := wire.Listen(listener, secured, connections)
	return port{
		listener: wired,
		server: &http.Server{
			Handler: handler, Protocols: protocols, ConnContext: wire.Context, ConnState: wired.ConnState,
			ReadHeaderTimeout: s.config.HeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
			ErrorLog: log.New(serverLog{s.config.Log.Named("http")}, "", 0),
		},
	}, nil
}

// serverLog is where net/http complains.
type serverLog struct{ log *zap.Logger }

// Write tells a line. Failed handshakes are the doing of strangers and of probes that only open a connection.
func (l serverLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if strings.Contains(text, "TLS handshake error") {
		l.log.Debug(text)
	} else {
		l.log.Error(text)
	}
	return len(line), nil
}

// S3Address is where the S3 port listens.
func (s *Server) S3Address() string { return s.s3.listener.Addr().String() }

// AdminAddress is where the admin port listens.
func (s *Server) AdminAddress() string { return s.admin.listener.Addr().String() }

// Serve serves until the context ends, then drains.
func (s *Server) Serve(ctx context.Context) error {
	// What serves must outlive the signal to stop, to be drained.
	group, serving := errgroup.WithContext(context.WithoutCancel(ctx))
	watching, stopWatching := context.WithCancel(serving)
	for _, p := range s.ports() {
		group.Go(p.serve)
	}
	group.Go(func() error { s.cert.Watch(watching, s.config.ReloadPeriod); return nil })
	group.Go(func() error { s.ring.Watch(watching, s.config.ReloadPeriod); return nil })
	group.Go(func() error { s.guard.Watch(watching, s.config.PeersPeriod); return nil })
	s.config.Log.Info("serving", zap.String("s3", s.S3Address()), zap.String("admin", s.AdminAddress()))

	select {
	case <-ctx.Done():
	case <-serving.Done():
	}
	err := s.drain(context.WithoutCancel(ctx))
	stopWatching()
	s.closeIdle()
	return errors.Join(group.Wait(), err)
}

// closeIdle closes what is open to Garage and not in use.
func (s *Server) closeIdle() {
	s.garage.CloseIdleConnections()
	s.transport.CloseIdleConnections()
}

func (p port) serve() error {
	if err := p.server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", p.listener.Addr(), err)
	}
	return nil
}

// drain says that the gateway is not ready any more, leaves time for that to be seen, and finishes what is running.
func (s *Server) drain(ctx context.Context) error {
	s.readiness.Drain()
	s.gate.Stop()
	s.config.Log.Info("stopping")
	time.Sleep(s.config.DrainDelay)
	ctx, cancel := context.WithTimeout(ctx, s.config.DrainTimeout)
	defer cancel()
	var errs []error
	for _, p := range s.ports() {
		if err := p.server.Shutdown(ctx); err != nil {
			s.config.Log.Warn("requests cut off by the end of the drain", zap.Error(err))
			errs = append(errs, p.server.Close())
		}
	}
	s.config.Log.Info("stopped")
	return errors.Join(errs...)
}
