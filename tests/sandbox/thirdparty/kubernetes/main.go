// Command kubernetes is kube-apiserver, kube-controller-manager, kube-scheduler,
// kubelet, kube-proxy and kubectl in one binary: linking one file instead of six
// saves most of the build time and of the disk. The component is the name the
// binary is called by (a symlink) or else the first argument.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of client-go
	_ "k8s.io/component-base/metrics/prometheus/version"  // metric with the version
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func components() map[string]func() *cobra.Command {
	return map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
		"kube-proxy":              proxy.NewProxyCommand,
		"kubectl":                 kubectl.NewDefaultKubectlCommand,
	}
}

func main() {
	all := components()
	name := filepath.Base(os.Args[0])

	if all[name] == nil && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}

	newCommand := all[name]
	if newCommand == nil {
		fmt.Fprintf(os.Stderr, "kubernetes: no component %q\n", name)
		os.Exit(2)
	}

	if name != "kubectl" {
		os.Exit(cli.Run(newCommand()))
	}

	// kubectl words its errors for people and has its own exit codes.
	kubectlutil.CheckErr(cli.RunNoErrOutput(newCommand()))
}
