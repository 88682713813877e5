package platform

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

const (
	defaultRPCTimeout       = 10 * time.Second
	defaultDeckhouseVersion = "v1.78.0"
)

// Options are the flags of `sandbox up` that belong to the platform.
type Options struct {
	KeyLifetime      time.Duration `json:"keyLifetime"`      // life of a consumer's key; 0 leaves the module's default
	RPCTimeout       time.Duration `json:"rpcTimeout"`       // Garage's rpc_timeout_msec
	DeckhouseVersion string        `json:"deckhouseVersion"` // global.deckhouseVersion
	Modules          []string      `json:"modules"`          // other modules that are said to be enabled
	Protection       bool          `json:"protection"`       // Deckhouse's policies for its objects are in force
}

// defaultModules are those whose kinds the module's chart prints objects of.
func defaultModules() []string {
	return []string{"operator-prometheus", "prometheus", "vertical-pod-autoscaler"}
}

// AddFlags adds the options to the flags of a command.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.KeyLifetime, "key-lifetime", 0, "life of a consumer's S3 key (default: the module's, 30m)")
	flags.DurationVar(&o.RPCTimeout, "rpc-timeout", defaultRPCTimeout, "Garage's RPC timeout; re-replication starts twice as much later")
	flags.StringVar(&o.DeckhouseVersion, "deckhouse-version", defaultDeckhouseVersion, "version of Deckhouse that the module is told")
	flags.StringSliceVar(&o.Modules, "modules", defaultModules(), "other Deckhouse modules that the module is told are enabled")
	flags.BoolVar(&o.Protection, "protection", false, "protect Deckhouse's objects and namespaces from administrators, as Deckhouse does")
}

// Remember takes what the flags do not say from the last start in dir: what was asked
// for once stays until something else is asked for.
func (o *Options) Remember(dir statedir.Dir, flags *pflag.FlagSet) error {
	env, err := Load(dir)
	if errors.Is(err, errNotUp) {
		return nil
	}

	if err != nil {
		return err
	}

	last := env.Options

	for flag, take := range map[string]func(){
		"key-lifetime":      func() { o.KeyLifetime = last.KeyLifetime },
		"rpc-timeout":       func() { o.RPCTimeout = last.RPCTimeout },
		"deckhouse-version": func() { o.DeckhouseVersion = last.DeckhouseVersion },
		"modules":           func() { o.Modules = last.Modules },
		"protection":        func() { o.Protection = last.Protection },
	} {
		if !flags.Changed(flag) {
			take()
		}
	}

	return nil
}
