package node

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/pki"
	"github.com/deckhouse/system-s3/tests/sandbox/process"
)

const (
	networkName = "s3sb"
	pluginPath  = "/usr/lib/cni"
)

func write(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), folderMode); err != nil {
		return fmt.Errorf("make the folder of a configuration: %w", err)
	}

	if err := os.WriteFile(path, []byte(content), fileMode); err != nil {
		return fmt.Errorf("write a configuration: %w", err)
	}

	return nil
}

func (r Runner) containerd(n Node) process.Spec {
	return process.Spec{
		Name:      n.Name + ".containerd",
		Args:      []string{"containerd", "--config", r.Dir.Node(n.Name, "containerd.toml")},
		Reads:     []string{r.Dir.Node(n.Name, "containerd.toml")},
		Namespace: n.Address.Namespace(),
		Group:     n.Name,
	}
}

// containerdConfig keeps all state of the runtime under the node's folder. "run"
// is what a real machine keeps in memory.
func (r Runner) containerdConfig(n Node) string {
	const template = `version = 2
root = %q
state = %q

[grpc]
  address = %q

[plugins."io.containerd.internal.v1.opt"]
  path = %q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  # Without CAP_SYS_RESOURCE a process cannot lower its score.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q

  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %q

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = %q
`

	in := func(elements ...string) string { return r.Dir.Node(n.Name, elements...) }

	return fmt.Sprintf(template, in("containerd"), in("run"), r.socket(n), in("opt"), r.PauseImage,
		pluginPath, in("net.d"), in("certs.d"), in("run", "runc"))
}

// hostsConfig tells containerd that the sandbox's registry speaks plain HTTP.
func hostsConfig() string {
	return fmt.Sprintf(`server = "http://%[1]s"

[host."http://%[1]s"]
  capabilities = ["pull", "resolve"]
`, address.Registry())
}

func (r Runner) networkConfig(n Node) string {
	const template = `{
  "cniVersion": "0.4.0",
  "name": %q,
  "plugins": [{
    "type": "bridge",
    "bridge": "cni0",
    "isGateway": true,
    "hairpinMode": true,
    "ipMasq": false,
    "ipam": {
      "type": "host-local",
      "dataDir": %q,
      "ranges": [[{"subnet": %q}]],
      "routes": [{"dst": "0.0.0.0/0"}]
    }
  }]
}
`
	// The leases are forgotten with the Pods when the node is switched off.
	return fmt.Sprintf(template, networkName, r.Dir.Node(n.Name, "run", "leases"), n.Address.Pods())
}

// Kubelet is the name of the process that is the kubelet of the node.
func Kubelet(node string) string { return node + ".kubelet" }

func (r Runner) kubelet(n Node) process.Spec {
	return process.Spec{
		Name: Kubelet(n.Name),
		Args: []string{
			r.Kubernetes, "kubelet",
			"--config=" + r.Dir.Node(n.Name, "kubelet.yaml"),
			"--kubeconfig=" + r.kubeconfig(n),
			"--root-dir=" + r.Dir.Node(n.Name, "kubelet"),
			"--cert-dir=" + r.Dir.Node(n.Name, "kubelet", "pki"),
			"--hostname-override=" + n.Name,
			"--node-ip=" + n.Address.IP(),
		},
		Reads:     []string{r.Dir.Node(n.Name, "kubelet.yaml")},
		Namespace: n.Address.Namespace(),
		Group:     n.Name,
	}
}

func (r Runner) kubeletConfig(n Node, a *pki.Authority) string {
	const template = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %q
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %q}
authorization: {mode: Webhook}
tlsCertFile: %q
tlsPrivateKeyFile: %q
containerRuntimeEndpoint: %q
resolvConf: %q
podLogsDir: %q
clusterDNS: [%q]
clusterDomain: %q
cgroupDriver: cgroupfs
# The kubelets share one machine: none may divide it or reserve parts of it.
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
evictionHard: {}
localStorageCapacityIsolation: false
imageGCHighThresholdPercent: 100
serializeImagePulls: false
# Secrets and ConfigMaps reach Pods soon enough for a test to wait for them.
syncFrequency: 10s
nodeStatusUpdateFrequency: 4s
`

	in := func(elements ...string) string { return r.Dir.Node(n.Name, elements...) }

	return fmt.Sprintf(template, n.Address.IP(), a.CA(), a.Cert(servingFile(n)), a.Key(servingFile(n)),
		"unix://"+r.socket(n), in("resolv.conf"), in("logs"), address.DNSService, address.ClusterDomain)
}

func (r Runner) proxy(n Node) process.Spec {
	return process.Spec{
		Name: n.Name + ".kube-proxy",
		Args: []string{
			r.Kubernetes, "kube-proxy",
			"--kubeconfig=" + r.Dir.PKI("kube-proxy.kubeconfig"),
			"--hostname-override=" + n.Name,
			"--proxy-mode=iptables",
			"--cluster-cidr=" + address.Pods,
			// These limits are the machine's, not the namespace's, and not ours to set.
			"--conntrack-max-per-core=0",
			"--conntrack-tcp-timeout-established=0",
			"--conntrack-tcp-timeout-close-wait=0",
		},
		Namespace: n.Address.Namespace(),
		Group:     n.Name,
	}
}
