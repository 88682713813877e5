package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/deckhouse/system-s3/tests/sandbox/command"
)

const (
	// installLimit bounds the work of apt-get with all its waiting.
	installLimit = 20 * time.Minute
	listsFolder  = "/var/lib/apt/lists"
	policyFile   = "/usr/sbin/policy-rc.d"
	policyMode   = 0o755
)

var errInstall = errors.New("apt-get takes too long")

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
		"ca-certificates":             "/etc/ssl/certs/ca-certificates.crt",
		// Garage is written in Rust with libraries in C and C++.
		"gcc":       "/usr/bin/gcc",
		"g++":       "/usr/bin/g++",
		"libc6-dev": "/usr/include/stdio.h",
		"make":      "/usr/bin/make",
		// It fetches AWS's test vectors and the AWS CLI of the demo.
		"python3-pip": "/usr/bin/pip3",
		// The status page is tested in a browser, which brings no font of its own.
		"chromium":          "/usr/bin/chromium",
		"fonts-dejavu-core": "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
	}
}

// services are those of the packages that Debian starts with them.
func services() []string { return []string{"containerd", "etcd"} }

func missingPackages() []string {
	var missing []string

	for _, name := range slices.Sorted(maps.Keys(packages())) {
		// Older systems and merged ones differ in the folder, not in the name.
		if file := packages()[name]; !exists(file) && !exists(strings.TrimPrefix(file, "/usr")) {
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

	ctx, cancel := context.WithTimeoutCause(ctx, installLimit, errInstall)
	defer cancel()

	allow, err := forbidServices()
	if err != nil {
		return err
	}

	return errors.Join(install(ctx, missing), allow())
}

// install tries with the package lists that are there: they are large. They may be
// too old, or missing, as on a machine that was just made.
func install(ctx context.Context, missing []string) error {
	if !listed(listsFolder) {
		if err := apt(ctx, "update"); err != nil {
			return fmt.Errorf("update the package lists: %w", err)
		}
	}

	args := append([]string{"install", "-y", "--no-install-recommends"}, missing...)
	if apt(ctx, args...) == nil {
		return disableServices(ctx, missing)
	}

	if err := apt(ctx, "update"); err != nil {
		return fmt.Errorf("update the package lists: %w", err)
	}

	if err := apt(ctx, args...); err != nil {
		return fmt.Errorf("install %s: %w", strings.Join(missing, " "), err)
	}

	return disableServices(ctx, missing)
}

// apt waits for another package manager, such as the nightly one, and for a slow
// mirror, but not for ever; and it asks nobody anything.
func apt(ctx context.Context, args ...string) error {
	return command.Run(ctx, "env", append([]string{
		"DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq",
		"-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3", "-o", "Acquire::http::Timeout=30",
	}, args...)...)
}

// listed tells whether there are package lists in the folder.
func listed(folder string) bool {
	found, err := filepath.Glob(filepath.Join(folder, "*_Packages*"))

	return err == nil && len(found) > 0
}

// forbidServices keeps Debian from starting the services of the packages: the sandbox
// runs the programs itself, and a containerd and an etcd of the machine's own would be
// news to its owner. Debian's tools ask this one file before they start anything;
// RUNLEVEL and the like they look at only without systemd. The answer is "no" only for
// these services and while this process lives: should it be killed in between, the
// file forbids nothing. Where there is such a file already its word stays the word.
func forbidServices() (func() error, error) {
	if exists(policyFile) {
		return func() error { return nil }, nil
	}

	if err := os.WriteFile(policyFile, []byte(policy(os.Getpid())), policyMode); err != nil {
		return nil, fmt.Errorf("keep services from starting: %w", err)
	}

	return func() error {
		if err := os.Remove(policyFile); err != nil {
			return fmt.Errorf("let services start again: %w", err)
		}

		return nil
	}, nil
}

// policy is called with the name of a service first; 101 means that it may not start.
func policy(pid int) string {
	return fmt.Sprintf(`#!/bin/sh
# Written by the sandbox of system-s3 while it installs packages; it may be deleted.
case "$1" in
%s) if kill -0 %d 2>/dev/null; then exit 101; fi ;;
esac
exit 0
`, strings.Join(services(), "*|")+"*", pid)
}

// disableServices keeps what was just installed from starting with the machine.
func disableServices(ctx context.Context, installed []string) error {
	if !exists("/run/systemd/system") {
		return nil // nothing starts services here
	}

	for _, service := range services() {
		if !slices.ContainsFunc(installed, func(name string) bool { return strings.HasPrefix(name, service) }) {
			continue
		}

		if err := command.Quick(ctx, "systemctl", "disable", "--quiet", service); err != nil {
			return fmt.Errorf("keep %s from starting with the machine: %w", service, err)
		}
	}

	return nil
}
