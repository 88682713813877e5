package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/images/controller/internal/leave"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
)

// leaveCommand is the subcommand that takes the disabled module out of the cluster.
const leaveCommand = "leave"

const (
	passLimit     = 5 * time.Minute // of one pass over everything, 5 000 SystemBuckets included
	callLimit     = 30 * time.Second
	sleepInterval = 5 * time.Second
	awaitInterval = 2 * time.Second
	firstRetry    = time.Second
	lastRetry     = 30 * time.Second
)

// goodbye runs the leaver until it is told to end: it never gives up.
type goodbye struct {
	pass   func(context.Context) (leave.Progress, error)
	wait   func(context.Context, time.Duration)
	log    logr.Logger
	turned atomic.Int64 // when the last pass ended, Unix seconds
}

func runLeave(log logr.Logger) error {
	ctx := ctrl.SetupSignalHandler()
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	own := limited(config)
	own.Timeout = callLimit
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("fill the scheme: %w", err)
	}
	api, err := client.New(own, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make the client: %w", err)
	}
	g := &goodbye{pass: (&leave.Leaver{Client: api, Now: time.Now}).Pass, wait: waitFor, log: log}
	g.turned.Store(time.Now().Unix())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { g.run(ctx); return nil })
	group.Go(func() error { return g.serveHealth(ctx) })
	return group.Wait() //nolint:wrapcheck // the functions above wrap it
}

// run makes passes until the context ends.
func (g *goodbye) run(ctx context.Context) {
	retry, told := firstRetry, leave.Progress(-1)
	for ctx.Err() == nil {
		progress, err := g.once(ctx)
		g.turned.Store(time.Now().Unix())
		if err != nil {
			if ctx.Err() == nil {
				g.log.Error(err, "leaving goes on")
			}
			g.wait(ctx, retry)
			retry = min(2*retry, lastRetry) //nolint:mnd // twice as long each time
			continue
		}
		retry = firstRetry
		if progress != told {
			g.log.Info("leaving", "progress", progressText(progress))
			told = progress
		}
		g.wait(ctx, pauseAfter(progress))
	}
}

func (g *goodbye) once(ctx context.Context) (leave.Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, passLimit)
	defer cancel()
	return g.pass(ctx) //nolint:wrapcheck // it names its step
}

func pauseAfter(progress leave.Progress) time.Duration {
	if progress == leave.Waiting {
		return awaitInterval
	}
	return sleepInterval
}

func progressText(progress leave.Progress) string {
	switch progress {
	case leave.Asleep:
		return "the module is enabled, nothing to do"
	case leave.Waiting:
		return "waiting for Pods to end"
	case leave.Gone:
		return "nothing is left to do"
	}
	return "unknown"
}

func waitFor(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// serveHealth answers the probes: well as long as passes end.
func (g *goodbye) serveHealth(ctx context.Context) error {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", ":"+strconv.Itoa(names.ControllerProbesPort))
	if err != nil {
		return fmt.Errorf("listen for probes: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(g.health), ReadHeaderTimeout: headerTimeout}
	go func() {
		<-ctx.Done()
		_ = server.Close() // nobody waits for an answer
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answer probes: %w", err)
	}
	return nil
}

func (g *goodbye) health(w http.ResponseWriter, _ *http.Request) {
	if time.Since(time.Unix(g.turned.Load(), 0)) > passLimit+lastRetry+callLimit {
		http.Error(w, "no pass has ended for too long", http.StatusServiceUnavailable)
	}
}
