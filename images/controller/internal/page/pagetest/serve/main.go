// Command serve serves the status page of clusters that exist in memory only, for tests with a browser. It prints its
// address, then takes the name of a cluster from each line of its input and answers with the same name. It ends with
// its input.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/images/controller/internal/page"
	"github.com/deckhouse/system-s3/images/controller/internal/page/pagetest"
	"github.com/deckhouse/system-s3/images/controller/internal/status"
	"github.com/deckhouse/system-s3/lib/sts"
)

const (
	many          = 5000
	headerTimeout = 5 * time.Second
)

// anyone lets those see the page who know the word.
type anyone struct{}

func (anyone) View(_ context.Context, token string) (string, bool, error) {
	if token != "viewer" {
		return "", false, sts.ErrTokenRefused
	}
	return "viewer", true, nil
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var shown atomic.Pointer[page.Observer]
	show := func(objects []client.Object) error {
		reader, err := pagetest.Cache(ctx, objects, page.Cached())
		if err != nil {
			return err
		}
		shown.Store(&page.Observer{Reader: reader, Live: reader, Version: "v1.0.0", Now: func() time.Time { return pagetest.Now }})
		return nil
	}
	if err := show(pagetest.Well()); err != nil {
		return err
	}
	handler, err := page.New(page.Config{
		Viewers: anyone{}, Log: logr.Discard(),
		Observe: func(ctx context.Context) status.World { return shown.Load().Observe(ctx) },
	})
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	go func() { _ = (&http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}).Serve(listener) }()
	fmt.Println("http://" + listener.Addr().String()) //nolint:forbidigo // the answer of the program
	return follow(show)
}

func follow(show func([]client.Object) error) error {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		clusters := map[string]func() []client.Object{
			"well": pagetest.Well, "trouble": pagetest.Trouble, "empty": pagetest.Empty, "hostile": pagetest.Hostile,
			"many": func() []client.Object { return pagetest.Many(many) },
		}
		objects, known := clusters[lines.Text()]
		if !known {
			return errors.New("no such cluster: " + lines.Text())
		}
		if err := show(objects()); err != nil {
			return err
		}
		fmt.Println(lines.Text()) //nolint:forbidigo // the answer of the program
	}
	return nil
}
