package artifact

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/deckhouse/system-s3/tests/sandbox/command"
)

// packages lists what the sandbox takes from Debian, each with a file it brings,
// by which its presence is told.
func packages() map[string]string {
	return map[string]string{
		"containerd":                  "/usr/bin/containerd",
		"runc":                        "/usr/sbin/runc",
		"containernetworking-plugins": "/usr/lib/cni/bridge",
		"iptables":                    "/usr/sbin/iptables",
		"iproute2":                    "/usr/sbin/ip",
		"conntrack":                   "/usr/sbin/conntrack",
		"etcd-server":                 "/usr/bin/etcd",
		"xfsprogs":                    "/usr/sbin/mkfs.xfs",
		"procps":                      "/usr/sbin/sysctl",
		"util-linux":                  "/usr/bin/nsenter",
		"mount":                       "/usr/sbin/losetup",
	}
}

func missingPackages() []string {
	var missing []string

	for name, file := range packages() {
		// Older systems and merged ones differ in the folder, not in the name.
		if !exists(file) && !exists(strings.TrimPrefix(file, "/usr")) {
			missing = append(missing, name)
		}
	}

	return missing
}

// EnsurePackages installs the Debian packages that are missing, saying so first.
func EnsurePackages(ctx context.Context, progress io.Writer) error {
	missing := missingPackages()
	if len(missing) == 0 {
		return nil
	}

	fmt.Fprintf(progress, "installing Debian packages: %s\n", strings.Join(missing, " ")) //nolint:errcheck // progress only

	if err := command.Run(ctx, "apt-get", "update", "-qq"); err != nil {
		return fmt.Errorf("update the package lists: %w", err)
	}

	args := append([]string{"install", "-y", "-qq", "--no-install-recommends"}, missing...)
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")

	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("install %s: %w: %s", strings.Join(missing, " "), err, out)
	}

	return nil
}
