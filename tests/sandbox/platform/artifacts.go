package platform

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
)

const operatorVersion = "1.24.4"

// Operator is addon-operator as upstream builds it, with the pins of thirdparty/addon-operator.
func Operator() artifact.Artifact {
	const pkg = "github.com/flant/addon-operator"

	return artifact.Artifact{
		Name: "addon-operator", Version: operatorVersion, Result: "bin/addon-operator",
		Build: func(source, out string) artifact.Command {
			return artifact.Command{
				Dir: filepath.Join(source, "thirdparty", "addon-operator"),
				Args: []string{
					"go", "build", "-trimpath",
					"-ldflags", "-s -w -X " + pkg + "/pkg/app.Version=v" + operatorVersion,
					"-o", out, pkg + "/cmd/addon-operator",
				},
				Env: []string{"CGO_ENABLED=0"},
			}
		},
	}
}

// complete fills in what was not given: places in the checkout, the addresses of the
// sandbox, the version of the cluster, and the programs, which are built if need be.
func (e Env) complete(ctx context.Context) (Env, error) {
	store, err := artifact.NewStore(os.Stderr)
	if err != nil {
		return Env{}, fmt.Errorf("prepare the platform: %w", err)
	}

	if e.Checkout == "" && store.Source() == "" {
		return Env{}, fmt.Errorf("prepare the platform: %w", artifact.ErrNoSource)
	}

	e.Checkout = cmp.Or(e.Checkout, filepath.Dir(filepath.Dir(store.Source())))
	e.Registry = cmp.Or(e.Registry, address.Registry())
	e.Domain = cmp.Or(e.Domain, address.ClusterDomain)

	for _, program := range []struct {
		path *string
		from artifact.Artifact
	}{{&e.Operator, Operator()}, {&e.Garage, artifact.Garage()}} {
		if *program.path != "" {
			continue
		}

		if *program.path, err = store.Ensure(ctx, program.from); err != nil {
			return Env{}, fmt.Errorf("prepare the platform: %w", err)
		}
	}

	if e.Kubernetes == "" {
		e.Kubernetes, err = clusterVersion(e.Dir.Kubeconfig())
	}

	return e, err
}

func clusterVersion(kubeconfig string) (string, error) {
	admin, err := newClients(kubeconfig)
	if err != nil {
		return "", err
	}

	version, err := admin.typed.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("ask the cluster for its version: %w", err)
	}

	return version.GitVersion, nil
}
