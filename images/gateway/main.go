// The gateway is the TLS sidecar in front of a Garage node: the only way in. Its two verbs are prepare, the init step
// that readies the node's volume, and serve.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/deckhouse/system-s3/images/gateway/internal/preparation"
	"github.com/deckhouse/system-s3/images/gateway/internal/serving"
	"github.com/deckhouse/system-s3/lib/version"
)

func main() {
	shareProcessors()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// shareProcessors takes half of what there is, unless the environment says how much to take. For every byte that passes
// Garage has more to do than the gateway, and threads that nobody has work for only wake each other.
func shareProcessors() {
	if _, given := os.LookupEnv("GOMAXPROCS"); !given {
		const share = 2
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/share))
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "gateway",
		Short:         "TLS, access and readiness in front of a Garage node",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.String(),
	}
	root.SetVersionTemplate(version.Line("gateway") + "\n")
	root.AddCommand(prepareCommand(), serveCommand())
	return root
}

func prepareCommand() *cobra.Command {
	c := preparation.Config{PodName: os.Getenv("POD_NAME")}
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Ready the volume: identity, secrets of the epoch, old layout aside (POD_NAME and EPOCH from the environment)",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			epoch, err := strconv.Atoi(os.Getenv("EPOCH"))
			if err != nil {
				return fmt.Errorf("EPOCH must be a number: %w", err)
			}
			c.Epoch = epoch
			if err := preparation.Run(c); err != nil {
				return fmt.Errorf("prepare %s: %w", c.PodName, err)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.MetadataDir, "metadata-dir", "/var/lib/garage/meta", "Garage's metadata_dir")
	flags.StringVar(&c.RunDir, "run-dir", "/run/garage", "in memory, for Garage's secrets")
	flags.StringVar(&c.PlaneDir, "plane-dir", "/etc/system-s3/plane", "the plane's Secret as mounted")
	flags.StringVar(&c.ConfigFile, "config", "/etc/garage/garage.toml", "Garage's configuration as mounted, copied beside its secrets")
	return cmd
}

func serveCommand() *cobra.Command {
	c := serving.Default()
	level := "info"
	for name, setting := range map[string]*string{"CLUSTER_DOMAIN": &c.ClusterDomain, "VOLUME": &c.VolumeDir, "LOG_LEVEL": &level} {
		if value, ok := os.LookupEnv(name); ok {
			*setting = value
		}
	}
	cmd := &cobra.Command{
		Use: "serve",
		Short: "Serve S3 and the admin API with TLS until a signal to stop " +
			"(POD_NAME, EPOCH, MEMBERS, CLUSTER_DOMAIN, VOLUME and LOG_LEVEL from the environment)",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readRole(&c, os.LookupEnv); err != nil {
				return err
			}
			log, err := logger(level)
			if err != nil {
				return err
			}
			c.Log = log
			return serving.Run(cmd.Context(), c)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.S3Address, "s3-address", c.S3Address, "where the S3 port listens")
	flags.StringVar(&c.AdminAddress, "admin-address", c.AdminAddress, "where the admin port listens")
	flags.StringVar(&c.Metrics, "metrics-address", c.Metrics, "where the metrics are told")
	flags.StringVar(&c.TLSDir, "tls-dir", c.TLSDir, "Secret tls as mounted")
	flags.StringVar(&c.RingFile, "key-ring", c.RingFile, "key ring")
	flags.StringVar(&c.PlaneDir, "plane-dir", c.PlaneDir, "the plane's Secret as mounted")
	flags.StringVar(&c.VolumeDir, "volume-dir", c.VolumeDir, "on the volume that Garage lives on")
	flags.StringVar(&c.GarageS3, "garage-s3", c.GarageS3, "URL of Garage's S3 API")
	flags.StringVar(&c.GarageAdmin, "garage-admin", c.GarageAdmin, "URL of Garage's admin API")
	flags.StringVar(&c.STS, "sts", c.STS, "URL of the STS service")
	flags.StringVar(&c.ClusterDomain, "cluster-domain", c.ClusterDomain, "the cluster's DNS domain")
	flags.StringVar(&level, "log-level", level, "debug, info, warn or error")
	flags.DurationVar(&c.StallTimeout, "stall-timeout", c.StallTimeout, "a request on which no byte moves for so long is given up")
	flags.DurationVar(&c.DrainDelay, "drain-delay", c.DrainDelay, "from the signal to stop until no connection is accepted")
	flags.DurationVar(&c.DrainTimeout, "drain-timeout", c.DrainTimeout, "what running requests get from then on")
	return cmd
}

// readRole reads which epoch the replica runs in and whether it has a role. A template that tells nothing of them is one
// of before there were several epochs.
func readRole(c *serving.Config, lookup func(string) (string, bool)) error {
	if epoch, given := lookup("EPOCH"); given {
		n, err := strconv.Atoi(epoch)
		if err != nil {
			return fmt.Errorf("EPOCH must be a number: %w", err)
		}
		c.Epoch = n
	}
	members, given := lookup("MEMBERS")
	if !given {
		return nil
	}
	pod, _ := lookup("POD_NAME")
	ordinal, err := preparation.Ordinal(pod)
	if err != nil {
		return fmt.Errorf("POD_NAME must tell the ordinal: %w", err)
	}
	c.Member = slices.Contains(strings.Split(members, ","), strconv.Itoa(ordinal))
	return nil
}

func logger(level string) (*zap.Logger, error) {
	parsed, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("parse the log level: %w", err)
	}
	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(parsed)
	config.EncoderConfig.EncodeTime = zapcore.RFC3339TimeEncoder
	config.DisableStacktrace = true
	config.Sampling = nil // every refused request has its line
	log, err := config.Build()
	if err != nil {
		return nil, fmt.Errorf("build the logger: %w", err)
	}
	return log, nil
}
