package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"
)

// run is the platform's process: the webhook and the controller of the stand-ins.
func run(ctx context.Context, env Env, log *slog.Logger) error {
	stand, gate, err := newStandIns(env)
	if err != nil {
		return err
	}

	stand.log = log
	open := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)

	group.Go(func() error { return serveGate(ctx, stand.client, gate, open) })
	group.Go(func() error {
		keepOperator(ctx, env, log)

		return nil
	})
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-open:
			return stand.run(ctx)
		}
	})

	if err := group.Wait(); err != nil {
		return fmt.Errorf("run the platform: %w", err)
	}

	return nil
}

func newStandIns(env Env) (*controller, Gate, error) {
	def, settings, err := readBundle(env)
	if err != nil {
		return nil, Gate{}, err
	}

	deckhouse, err := newClients(env.deckhouseConfig())
	if err != nil {
		return nil, Gate{}, err
	}

	ready := sync.OnceValue(func() error { return os.WriteFile(env.path("ready"), nil, privateFile) })

	stand := &controller{
		client: deckhouse.typed, objects: deckhouse.plain, definition: def, settings: settings,
		facts: env.facts(), pretended: env.Options.Modules, operator: env.socket(), ready: ready,
	}

	return stand, Gate{
		Definition: def, Settings: settings, Facts: env.facts(), Modules: env.Options.Modules,
		Experimental: stand.experimental,
	}, nil
}

var errNoBundle = errors.New("there is no module in the modules directory")

// readBundle reads what the delivered module says about itself.
func readBundle(env Env) (Definition, Settings, error) {
	found, err := filepath.Glob(filepath.Join(env.modulesDir(), "*", "module.yaml"))
	if err != nil || len(found) == 0 {
		return Definition{}, Settings{}, errors.Join(errNoBundle, err)
	}

	dir := filepath.Dir(found[0])

	def, err := ReadDefinition(dir)
	if err != nil {
		return Definition{}, Settings{}, err
	}

	settings, err := ReadSettings(dir)

	return def, settings, err
}
