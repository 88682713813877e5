package platform

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/deckhouse/system-s3/tests/sandbox/process"
	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

const (
	privateDir  = 0o700
	privateFile = 0o600

	envFile = "env.json"
)

// Env is what the platform needs to know of the sandbox it serves. It is kept in the
// state directory, because the platform's processes outlive the command that starts
// them. Only Dir and Options have to be given; Up fills in the rest.
type Env struct {
	Dir     statedir.Dir `json:"dir"`
	Options Options      `json:"options"`

	Checkout   string `json:"checkout"`   // root of the module's checkout; empty: the one of the sandbox's source
	Registry   string `json:"registry"`   // host:port that images are pushed to and pulled from; empty: the sandbox's
	Domain     string `json:"domain"`     // cluster domain; empty: the sandbox's
	Kubernetes string `json:"kubernetes"` // version of the cluster, with the leading v; empty: the cluster is asked
	Operator   string `json:"operator"`   // addon-operator's program; empty: the built one
	Garage     string `json:"garage"`     // Garage's program; empty: the built one
}

// processes are those of this sandbox.
func (e Env) processes() process.Table { return process.NewTable(e.Dir, os.Stderr) }

// path is a place in the platform's part of the state directory.
func (e Env) path(elements ...string) string {
	return e.Dir.Path(append([]string{"platform"}, elements...)...)
}

func (e Env) modulesDir() string      { return e.path("modules") }
func (e Env) socket() debugSocket     { return debugSocket(e.path("debug.socket")) }
func (e Env) home() string            { return e.path("home") }
func (e Env) deckhouseConfig() string { return filepath.Join(e.home(), ".kube", "config") }

// facts are the facts of the cluster that global values repeat.
func (e Env) facts() ClusterFacts {
	return ClusterFacts{Domain: e.Domain, KubernetesVersion: e.Kubernetes, DeckhouseVersion: e.Options.DeckhouseVersion}
}

// save keeps the environment for the platform's processes.
func (e Env) save() error {
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("write environment: %w", err)
	}

	if err := os.MkdirAll(e.path(), privateDir); err != nil {
		return fmt.Errorf("write environment: %w", err)
	}

	return wrap("write environment", writeWhole(e.path(envFile), data))
}

// writeWhole replaces the file at once: a kill leaves the old one or the new one.
func writeWhole(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, privateFile); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}

	return wrap("keep "+path, os.Rename(path+".new", path))
}

// errNotUp is the answer of commands that look at a platform that was never started.
var errNotUp = errors.New("no platform here: run `sandbox up` first")

// Load reads the environment that Up saved in the state directory: what tests and commands start from.
func Load(dir statedir.Dir) (Env, error) {
	data, err := fs.ReadFile(os.DirFS(Env{Dir: dir}.path()), envFile)
	if errors.Is(err, os.ErrNotExist) {
		return Env{}, errNotUp
	}

	if err != nil {
		return Env{}, fmt.Errorf("read environment: %w", err)
	}

	var env Env
	if err := json.Unmarshal(data, &env); err != nil {
		return Env{}, fmt.Errorf("read environment: %w", err)
	}

	return env, nil
}

// staticValues are the values that Deckhouse ships with a module's release: digests of
// its images, and here the few internal values that make tests quick.
func (e Env) staticValues(def Definition, digests map[string]string) map[string]any {
	internal := map[string]any{"rpcTimeoutMsec": e.Options.RPCTimeout.Milliseconds()}
	if e.Options.KeyLifetime > 0 {
		internal["keyLifetimeSeconds"] = int64(e.Options.KeyLifetime.Seconds())
	}

	return map[string]any{
		"global": map[string]any{"modulesImages": map[string]any{
			"digests":  map[string]any{def.ValuesKey(): digests},
			"registry": map[string]any{"base": e.Registry + "/deckhouse", "dockercfg": "", "scheme": "HTTP", "address": e.Registry, "path": "/deckhouse"},
		}},
		// The module comes from a ModuleSource, whose registry Deckhouse puts in.
		def.ValuesKey(): map[string]any{"internal": internal, "registry": map[string]any{"base": e.Registry}},
	}
}

// listenPort is where addon-operator serves metrics.
func listenPort() string { return strconv.Itoa(operatorPort) }
