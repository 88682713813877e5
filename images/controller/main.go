// Command controller makes the plan of system-s3 real. One replica, the leader, drives Garage, SystemBuckets and the
// addresses of Service s3; every replica answers STS.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deckhouse/system-s3/images/controller/internal/metrics"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/version"
)

// options of the process.
type options struct {
	probes      string // address of /healthz and /readyz
	metrics     string // address of the metrics; "0" for none
	sts         string // address of the STS endpoint
	page        string // address of the status page
	tlsDir      string // with tls.crt and tls.key
	ringFile    string
	keyLifetime time.Duration
	level       zapcore.Level
	leave       bool // take the disabled module out of the cluster, nothing else
}

const (
	lifetimeVariable = "KEY_LIFETIME_SECONDS"
	levelVariable    = "LOG_LEVEL"
	defaultLifetime  = 30 * time.Minute // SPEC B1
)

func main() {
	o, err := parse(os.Args[1:], os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(2) //nolint:mnd // wrong usage, as the flag package has it
	}
	if o == nil {
		_, _ = fmt.Fprintln(os.Stdout, version.Line("controller")) // whoever closed it does not want to know
		return
	}
	log, err := newLogger(o.level)
	if err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	if o.leave {
		err = runLeave(log)
	} else {
		err = run(*o, log)
	}
	if err != nil {
		log.Error(err, "controller ends")
		os.Exit(1)
	}
}

// parse reads flags and environment; nil options mean that only the version is wanted.
func parse(args []string, variable func(name string) string) (*options, error) {
	o := &options{keyLifetime: defaultLifetime}
	if len(args) > 0 && args[0] == leaveCommand {
		o.leave, args = true, args[1:]
	}
	flags := flag.NewFlagSet("controller", flag.ContinueOnError)
	flags.StringVar(&o.probes, "health-probe-bind-address", ":"+strconv.Itoa(names.ControllerProbesPort), "address of /healthz and /readyz")
	flags.StringVar(&o.metrics, "metrics-bind-address", ":"+strconv.Itoa(names.MetricsPort), "address of the metrics, 0 for none")
	flags.StringVar(&o.sts, "sts-bind-address", ":"+strconv.Itoa(names.STSPort), "address of the STS endpoint")
	flags.StringVar(&o.page, "page-bind-address", ":"+strconv.Itoa(names.PagePort), "address of the status page")
	flags.StringVar(&o.tlsDir, "tls-dir", "/etc/system-s3/tls", "folder with tls.crt and tls.key")
	flags.StringVar(&o.ringFile, "key-ring-file", "/etc/system-s3/key-ring/"+names.KeyRingKey, "file with the signing keys")
	showVersion := flags.Bool("version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return nil, fmt.Errorf("read the flags: %w", err)
	}
	if *showVersion {
		return nil, nil //nolint:nilnil // documented above
	}
	return o, o.readVariables(variable)
}

// readVariables takes what the chart sets in the environment; what is not set keeps its default.
func (o *options) readVariables(variable func(name string) string) error {
	if lifetime := variable(lifetimeVariable); lifetime != "" {
		seconds, err := strconv.Atoi(lifetime)
		if err != nil || seconds < 1 {
			return fmt.Errorf("%s is %q, it must be a positive number of seconds", lifetimeVariable, lifetime)
		}
		o.keyLifetime = time.Duration(seconds) * time.Second
	}
	if level := variable(levelVariable); level != "" {
		parsed, err := zapcore.ParseLevel(level)
		if err != nil {
			return fmt.Errorf("%s: %w", levelVariable, err)
		}
		o.level = parsed
	}
	return nil
}

func newLogger(level zapcore.Level) (logr.Logger, error) {
	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(level)
	config.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	config.DisableStacktrace = true
	config.Sampling = nil // every issued key has its audit line
	logger, err := config.Build()
	if err != nil {
		return logr.Logger{}, fmt.Errorf("make the logger: %w", err)
	}
	return zapr.NewLogger(logger), nil
}

func run(o options, log logr.Logger) error {
	ctx := ctrl.SetupSignalHandler()
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	mgr, err := newManager(o, limited(config))
	if err != nil {
		return err
	}
	conditions := &metrics.Conditions{}
	if err := setupControllers(mgr, conditions); err != nil {
		return err
	}
	exchanges := metrics.NewExchanges()
	self, err := setupSTS(ctx, o, mgr, exchanges)
	if err != nil {
		return err
	}
	if err := setupMetrics(mgr, self, conditions, exchanges); err != nil {
		return err
	}
	if err := setupPage(o, mgr, log.WithName("page")); err != nil {
		return err
	}
	log.Info("controller starts", "version", version.String())
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// limited is the client's rate for all that the controller does; reviews for STS have a client of their own.
func limited(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	own.QPS, own.Burst = 200, 400 // a busy cluster: 5 000 SystemBuckets whose use changes every minute
	own.UserAgent = names.Module + "-controller/" + version.String()
	return own
}
