package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/command"
)

const dnsLimit = 90 * time.Second

//go:embed coredns.yaml
var dnsManifest string

// dns deploys CoreDNS and waits until it answers.
func (c Cluster) dns(ctx context.Context, binary, reference string) error {
	path := c.Dir.Path("coredns.yaml")
	manifest := strings.NewReplacer(
		"@IMAGE@", reference, "@DOMAIN@", address.ClusterDomain, "@ADDRESS@", address.DNSService,
	).Replace(dnsManifest)

	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}

	kubectl := func(args ...string) error {
		return command.Run(ctx, binary, append([]string{"kubectl", "--kubeconfig=" + c.Dir.Kubeconfig()}, args...)...)
	}

	if err := kubectl("apply", "--request-timeout="+dnsLimit.String(), "-f", path); err != nil {
		return fmt.Errorf("deploy: %w", err)
	}

	// This waits without a word; the Pods tell why when it takes too long.
	if err := kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout="+dnsLimit.String()); err != nil {
		return fmt.Errorf("wait: %w", err)
	}

	return nil
}
