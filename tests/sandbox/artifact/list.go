package artifact

import (
	"path/filepath"
	"strings"
)

// All lists what the sandbox needs built. A new artifact is a new entry here or in
// Cluster.
func All() []Artifact { return append(Cluster(), Garage()) }

// Cluster lists what a cluster without anything in it is made of.
func Cluster() []Artifact { return []Artifact{Kubernetes(), CoreDNS(), Pause()} }

const kubernetesVersion = "1.34.4"

// Kubernetes is all components and kubectl in one binary.
func Kubernetes() Artifact {
	// Without these kubectl cannot parse the version of the server.
	const pkg = " -X k8s.io/component-base/version."
	flags := pkg + "gitVersion=v" + kubernetesVersion + pkg + "gitMajor=1" + pkg + "gitMinor=34"

	return Artifact{
		Name:    "kubernetes",
		Version: kubernetesVersion,
		Result:  "bin/kubernetes",
		Build:   goBuild("thirdparty/kubernetes", flags, nil),
	}
}

// CoreDNS is the DNS server of the cluster.
func CoreDNS() Artifact {
	return Artifact{
		Name:    "coredns",
		Version: "1.15.0",
		Result:  "bin/coredns",
		Build:   goBuild("thirdparty/coredns", "", []string{"CGO_ENABLED=0"}),
	}
}

// Pause is the program that holds the namespaces of a Pod.
func Pause() Artifact {
	return Artifact{
		Name:    "pause",
		Version: "1",
		Result:  "bin/pause",
		Sources: []string{"pause"},
		Build:   goBuild("pause", "", []string{"CGO_ENABLED=0"}),
	}
}

// Garage is the upstream server, unmodified.
func Garage() Artifact {
	const version = "2.5.0"

	return Artifact{
		Name:    "garage",
		Version: version,
		Result:  "bin/garage",
		Build: func(_, out string) Command {
			return Command{
				Dir: "/",
				Args: []string{
					"cargo", "install", "garage", "--version", version, "--locked", "--root", out,
					"--no-default-features", "--features", "bundled-libs,metrics,lmdb",
				},
				Made: filepath.Join(out, "bin", "garage"),
			}
		},
	}
}

// goBuild builds the main package in the given folder of the sandbox's source.
func goBuild(folder, flags string, env []string) func(source, out string) Command {
	return func(source, out string) Command {
		return Command{
			Dir:  filepath.Join(source, folder),
			Args: []string{"go", "build", "-trimpath", "-ldflags", strings.TrimSpace("-s -w" + flags), "-o", out, "."},
			Env:  append([]string{"GOWORK=off"}, env...),
		}
	}
}
