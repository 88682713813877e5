// Package controlplane runs etcd and the control plane of Kubernetes on the
// machine's side of the bridge.
package controlplane

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/pki"
	"github.com/deckhouse/system-s3/tests/sandbox/process"
	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

const (
	etcdClients   = "http://127.0.0.1:12379"
	etcdPeers     = "http://127.0.0.1:12380"
	signingFile   = "service-accounts"
	readyLimit    = 90 * time.Second
	readyInterval = 100 * time.Millisecond
)

// ControlPlane is the control plane of one sandbox.
type ControlPlane struct {
	Dir       statedir.Dir
	Processes process.Table
	// Kubernetes is the path of the binary of all components.
	Kubernetes string
}

// Up starts what does not run and returns when the API server is ready.
func (c ControlPlane) Up(ctx context.Context) error {
	authority, err := pki.Open(c.Dir.PKI())
	if err != nil {
		return fmt.Errorf("open the authority: %w", err)
	}

	if err := c.issue(authority); err != nil {
		return fmt.Errorf("issue the certificates: %w", err)
	}

	signing, verifying, err := authority.SigningPair(signingFile)
	if err != nil {
		return fmt.Errorf("make the signing key: %w", err)
	}

	specs := []process.Spec{
		c.etcd(),
		c.apiServer(authority, signing, verifying),
	}
	if err := c.start(ctx, specs); err != nil {
		return err
	}

	if err := c.awaitReady(ctx); err != nil {
		return err
	}

	return c.start(ctx, []process.Spec{c.controllerManager(authority, signing), c.scheduler()})
}

func (c ControlPlane) start(ctx context.Context, specs []process.Spec) error {
	for _, spec := range specs {
		if err := c.Processes.Start(ctx, spec); err != nil {
			return fmt.Errorf("start the control plane: %w", err)
		}
	}

	return nil
}

func (c ControlPlane) issue(a *pki.Authority) error {
	for _, id := range []pki.Identity{
		{File: "apiserver", Name: "kube-apiserver", Hosts: []string{
			address.Host, address.APIService, "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc." + address.ClusterDomain,
		}},
		{File: "apiserver-kubelet-client", Name: "kube-apiserver-kubelet-client", Group: "system:masters"},
	} {
		if err := a.Issue(id); err != nil {
			return fmt.Errorf("issue for %s: %w", id.File, err)
		}
	}

	for path, id := range map[string]pki.Identity{
		c.Dir.Kubeconfig():                 {File: "admin", Name: "admin", Group: "system:masters"},
		c.kubeconfig("controller-manager"): {File: "controller-manager", Name: "system:kube-controller-manager"},
		c.kubeconfig("scheduler"):          {File: "scheduler", Name: "system:kube-scheduler"},
		c.Dir.PKI("kube-proxy.kubeconfig"): {File: "kube-proxy", Name: "system:kube-proxy"},
	} {
		if err := a.Kubeconfig(id, address.APIServer(), path); err != nil {
			return fmt.Errorf("kubeconfig for %s: %w", id.File, err)
		}
	}

	return nil
}

func (c ControlPlane) kubeconfig(component string) string {
	return c.Dir.PKI(component + ".kubeconfig")
}

func (c ControlPlane) awaitReady(ctx context.Context) error {
	client, err := Client(c.Dir)
	if err != nil {
		return err
	}

	last := error(nil)
	ready := func(ctx context.Context) (bool, error) {
		_, last = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)

		return last == nil, nil
	}

	if err := wait.PollUntilContextTimeout(ctx, readyInterval, readyLimit, true, ready); err != nil {
		return fmt.Errorf("API server is not ready (%w), see %s: %w", err, c.Dir.Log("kube-apiserver"), last)
	}

	return nil
}

// Client is the administrator's client of the sandbox.
func Client(dir statedir.Dir) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", dir.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}

	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}

	return client, nil
}
