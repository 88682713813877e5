// Package stage is where the demo and the end-to-end tests act: a running sandbox, as its administrator sees it and as
// Deckhouse sees it.
package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

// platformUser is Deckhouse itself. Only it may make namespaces of the platform and touch what carries its label.
const platformUser = "system:serviceaccount:d8-system:deckhouse"

// ErrNoSandbox means that there is no cluster to act on.
var ErrNoSandbox = errors.New("no sandbox is up: run `make up` first")

// errForeign guards whatever cluster KUBECONFIG may name: here namespaces are deleted without asking.
var errForeign = errors.New("KUBECONFIG names a cluster that is not the sandbox: unset it")

// Stage is a running sandbox.
type Stage struct {
	// Admin acts as the administrator of the cluster, Deckhouse as the platform.
	Admin, Deckhouse client.Client
	// Typed acts as the administrator, for what is no object: logs, tokens.
	Typed kubernetes.Interface
	// Config is the administrator's access.
	Config *rest.Config
	// Kubeconfig is its file.
	Kubeconfig string
	// Dir is the sandbox's state.
	Dir statedir.Dir
	// Registry is host:port that images are pushed to and pulled from.
	Registry string
	// Builds is where what is built from elsewhere is kept.
	Builds *artifact.Store
	// Out gets a line for each thing worth telling.
	Out io.Writer
}

// Open finds the running sandbox: by KUBECONFIG, else where sandboxes usually are. The error is ErrNoSandbox when there
// is none.
func Open(ctx context.Context, out io.Writer) (*Stage, error) {
	dir := statedir.Default()
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		path = dir.Kubeconfig()
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", ErrNoSandbox, path)
	}
	if config.Host != address.APIServer() {
		return nil, fmt.Errorf("%w (%s)", errForeign, config.Host)
	}
	config.QPS = -1 // the clients of a test wait for the cluster, not for themselves
	builds, err := artifact.NewStore(out)
	if err != nil {
		return nil, fmt.Errorf("open the store of builds: %w", err)
	}
	s := &Stage{
		Config: config, Kubeconfig: path, Dir: dir, Registry: address.Registry(), Builds: builds, Out: out,
	}
	if err := s.connect(); err != nil {
		return nil, err
	}
	if _, err := s.Typed.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return nil, fmt.Errorf("%w (%s: %w)", ErrNoSandbox, path, err)
	}
	return s, nil
}

func (s *Stage) connect() error {
	scheme := runtime.NewScheme()
	if err := errors.Join(kubescheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("register types: %w", err)
	}
	platform := rest.CopyConfig(s.Config)
	platform.Impersonate = rest.ImpersonationConfig{UserName: platformUser, Groups: []string{"system:masters", "system:serviceaccounts:d8-system"}}
	var err error
	if s.Admin, err = client.New(s.Config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if s.Deckhouse, err = client.New(platform, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make client of Deckhouse: %w", err)
	}
	if s.Typed, err = kubernetes.NewForConfig(s.Config); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return nil
}

// Source is the folder of the demo's Go module.
func (s *Stage) Source() string { return filepath.Join(s.Builds.Source(), "..", "demo") }

// Sayf writes a line for people.
func (s *Stage) Sayf(format string, args ...any) {
	fmt.Fprintf(s.Out, format+"\n", args...) //nolint:errcheck // there is nobody else to tell
}
