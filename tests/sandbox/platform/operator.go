package platform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/deckhouse/system-s3/tests/sandbox/process"
)

const (
	// OperatorProcess is addon-operator in the sandbox's table of processes.
	OperatorProcess = "addon-operator"
	// PlatformProcess is the process of the stand-ins there.
	PlatformProcess = "platform"

	operatorPort = 19650
	// operatorGrace is how long addon-operator may take to finish what it is doing.
	operatorGrace = 30 * time.Second
	// startLimit bounds the wait for a process to answer for the first time.
	startLimit = time.Minute
)

// StartOperator starts addon-operator unless it runs, and waits until it answers.
func StartOperator(ctx context.Context, env Env) error {
	// The command and the platform's process may both find it dead at the same moment.
	err := locked(env.path("operator.lock"), func() error {
		return env.processes().Start(ctx, process.Spec{
			Name: OperatorProcess,
			Args: []string{env.Operator, "start"},
			Env:  operatorEnv(env),
		})
	})
	if err != nil {
		return fmt.Errorf("start addon-operator: %w", err)
	}

	return await(ctx, "addon-operator to answer", func(ctx context.Context) bool {
		_, err := env.socket().get(ctx, "/module/list.json")

		return err == nil
	})
}

// StopOperator stops addon-operator, as if Deckhouse were down; ModuleConfigs are
// still checked and passed on, and picked up when it starts again.
func StopOperator(ctx context.Context, env Env) error {
	return wrap("stop addon-operator", env.processes().Stop(ctx, OperatorProcess, operatorGrace))
}

// operatorEnv is addon-operator's configuration. nelm reads only the kubeconfig in
// HOME. The label keeps it from overwriting the heritage of the module's CRDs.
func operatorEnv(env Env) []string {
	return []string{
		"HOME=" + env.home(),
		"KUBECONFIG=" + env.deckhouseConfig(),
		"USE_NELM=true",
		"ADDON_OPERATOR_NAMESPACE=" + systemNamespace,
		"ADDON_OPERATOR_MODULES_DIR=" + env.modulesDir(),
		"ADDON_OPERATOR_GLOBAL_HOOKS_DIR=" + env.path("global-hooks"),
		"ADDON_OPERATOR_TMP_DIR=" + env.path("tmp"),
		"ADDON_OPERATOR_CONFIG_MAP=" + operatorConfig,
		"ADDON_OPERATOR_LISTEN_ADDRESS=127.0.0.1",
		"ADDON_OPERATOR_LISTEN_PORT=" + listenPort(),
		"ADDON_OPERATOR_CRD_EXTRA_LABELS=heritage=deckhouse",
		"DEBUG_UNIX_SOCKET=" + string(env.socket()),
		"LOG_LEVEL=info",
	}
}

// operatorDirs makes the folders that addon-operator expects to find.
func operatorDirs(env Env) error {
	for _, dir := range []string{env.path("global-hooks"), env.path("tmp"), env.home()} {
		if err := os.MkdirAll(dir, privateDir); err != nil {
			return fmt.Errorf("prepare addon-operator: %w", err)
		}
	}

	return nil
}

// locked does the work while no other process of this sandbox does the like.
func locked(path string, work func() error) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, privateFile) //nolint:gosec // A file of the state directory.
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	defer file.Close() //nolint:errcheck // Closing gives the lock back.

	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}

	return work()
}

var errTooLong = errors.New("it took too long")

// await asks again and again until the condition holds, at most for startLimit.
func await(ctx context.Context, what string, holds func(context.Context) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, errTooLong)
	defer cancel()

	for !holds(ctx) {
		if !waited(ctx, pause) {
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		}
	}

	return nil
}
