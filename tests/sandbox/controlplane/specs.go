package controlplane

import (
	"strconv"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/pki"
	"github.com/deckhouse/system-s3/tests/sandbox/process"
)

func (c ControlPlane) etcd() process.Spec {
	return process.Spec{
		Name: "etcd",
		Args: []string{
			"etcd", "--name=sandbox", "--data-dir=" + c.Dir.Path("etcd"),
			"--listen-client-urls=" + etcdClients, "--advertise-client-urls=" + etcdClients,
			"--listen-peer-urls=" + etcdPeers, "--initial-advertise-peer-urls=" + etcdPeers,
			"--initial-cluster=sandbox=" + etcdPeers,
		},
	}
}

func (c ControlPlane) apiServer(a *pki.Authority, signing, verifying string) process.Spec {
	return process.Spec{
		Name: "kube-apiserver",
		Args: []string{
			c.Kubernetes, "kube-apiserver",
			"--etcd-servers=" + etcdClients,
			"--bind-address=" + address.Host, "--advertise-address=" + address.Host,
			"--secure-port=" + strconv.Itoa(address.APIPort),
			"--service-cluster-ip-range=" + address.Services,
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			"--allow-privileged=true",
			"--client-ca-file=" + a.CA(),
			"--tls-cert-file=" + a.Cert("apiserver"), "--tls-private-key-file=" + a.Key("apiserver"),
			"--kubelet-certificate-authority=" + a.CA(),
			"--kubelet-client-certificate=" + a.Cert("apiserver-kubelet-client"),
			"--kubelet-client-key=" + a.Key("apiserver-kubelet-client"),
			"--kubelet-preferred-address-types=InternalIP",
			"--service-account-issuer=" + address.APIServer(),
			"--service-account-jwks-uri=" + address.APIServer() + "/openid/v1/jwks",
			"--service-account-key-file=" + verifying,
			"--service-account-signing-key-file=" + signing,
			// No kube-proxy on the machine's side: webhooks and aggregated APIs are
			// called at the Pods' own addresses.
			"--enable-aggregator-routing=true",
		},
	}
}

func (c ControlPlane) controllerManager(a *pki.Authority, signing string) process.Spec {
	config := c.kubeconfig("controller-manager")

	return process.Spec{
		Name: "kube-controller-manager",
		Args: []string{
			c.Kubernetes, "kube-controller-manager",
			"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
			"--bind-address=127.0.0.1", "--leader-elect=false", "--use-service-account-credentials=true",
			"--root-ca-file=" + a.CA(), "--service-account-private-key-file=" + signing,
			"--cluster-signing-cert-file=" + a.CA(), "--cluster-signing-key-file=" + a.CAKey(),
			"--cluster-cidr=" + address.Pods, "--service-cluster-ip-range=" + address.Services,
			// Each node has its network from the address plan.
			"--allocate-node-cidrs=false",
			// Twice the default's haste: a test that loses a node waits for this.
			"--node-monitor-grace-period=20s",
		},
	}
}

func (c ControlPlane) scheduler() process.Spec {
	config := c.kubeconfig("scheduler")

	return process.Spec{
		Name: "kube-scheduler",
		Args: []string{
			c.Kubernetes, "kube-scheduler",
			"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
			"--bind-address=127.0.0.1", "--leader-elect=false",
		},
	}
}
