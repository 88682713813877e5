package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/deckhouse/system-s3/tests/sandbox/process"
)

// platformGrace is how long the platform's process may take to end.
const platformGrace = 5 * time.Second

// Up gives the running cluster everything of Deckhouse: it builds the module's images
// and bundle from the checkout, installs the stand-ins and starts addon-operator. Run
// again, it brings a running platform up to date with the checkout; addon-operator is
// started anew only if the bundle changed, as on an update of the module.
func Up(ctx context.Context, env Env) error {
	env, err := env.complete(ctx)
	if err != nil {
		return err
	}

	if err := errors.Join(env.save(), operatorDirs(env)); err != nil {
		return err
	}

	sayf("building the module's images and pushing them to %s", env.Registry)

	digests, err := Images(ctx, env)
	if err != nil {
		return err
	}

	sayf("assembling the module's bundle, its hooks included")

	fresh, err := Bundle(ctx, env, digests)
	if err != nil {
		return err
	}

	sayf("starting the Deckhouse stand-ins and addon-operator")

	if err := install(ctx, env); err != nil {
		return err
	}

	if err := deliver(ctx, env, fresh); err != nil {
		return err
	}

	if err := startPlatform(ctx, env); err != nil {
		return err
	}

	return StartOperator(ctx, env)
}

// sayf tells whoever waits what the platform is doing.
func sayf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "platform: "+format+"\n", args...)
}

// Down ends the platform's processes. The module's objects stay in the cluster.
func Down(ctx context.Context, env Env) error {
	return errors.Join(
		// The platform's process first: it would start addon-operator again.
		wrap("stop the platform", env.processes().Stop(ctx, PlatformProcess, platformGrace)),
		StopOperator(ctx, env),
	)
}

// startPlatform starts the stand-ins anew, so that they run this very program, and
// waits until they have given addon-operator its configuration.
func startPlatform(ctx context.Context, env Env) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}

	processes := env.processes()
	if err := processes.Stop(ctx, PlatformProcess, platformGrace); err != nil {
		return fmt.Errorf("stop the platform: %w", err)
	}

	if err := os.RemoveAll(env.path("ready")); err != nil {
		return fmt.Errorf("start the platform: %w", err)
	}

	err = processes.Start(ctx, process.Spec{
		Name: PlatformProcess, Args: []string{program, "platform", "run", "--dir", string(env.Dir)},
	})
	if err != nil {
		return fmt.Errorf("start the platform: %w", err)
	}

	return await(ctx, "the platform, see "+env.Dir.Log(PlatformProcess), func(context.Context) bool {
		_, err := os.Stat(env.path("ready"))

		return err == nil
	})
}

// deliver puts a fresh modules directory in the place of the one that addon-operator
// reads. If the two differ addon-operator is stopped for it: it reads them at its start.
func deliver(ctx context.Context, env Env, fresh string) error {
	wanted, err := fingerprint(fresh)
	if err != nil {
		return err
	}

	// An absent directory has no fingerprint and is replaced.
	if present, err := fingerprint(env.modulesDir()); err == nil && present == wanted {
		return wrap("deliver the module", os.RemoveAll(fresh))
	}

	if err := StopOperator(ctx, env); err != nil {
		return err
	}

	return replaceDir(fresh, env.modulesDir())
}

// WaitIdle waits until addon-operator's main queue is empty, at most for the limit.
func WaitIdle(ctx context.Context, env Env, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer cancel()

	for {
		queue, err := env.socket().get(ctx, mainQueue)
		if err == nil && idle(queue) {
			return nil
		}

		if !waited(ctx, pause) {
			return fmt.Errorf("wait for addon-operator's queue: %w: %s", context.Cause(ctx), strings.TrimSpace(queue))
		}
	}
}

// keepOperator starts addon-operator again when it ended by itself, as a kubelet
// would. One that was stopped on purpose has no record and stays stopped.
func keepOperator(ctx context.Context, env Env, log *slog.Logger) {
	for waited(ctx, refresh) {
		record, found, err := env.processes().Find(OperatorProcess)
		if err != nil || !found || record.Alive() {
			continue
		}

		log.Warn("addon-operator ended by itself, starting it again")

		if err := StartOperator(ctx, env); err != nil && ctx.Err() == nil {
			log.Error("addon-operator does not start", "error", err)
		}
	}
}
