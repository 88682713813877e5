package platform

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

const experimental = "Experimental"

// CheckEnabling refuses to switch on a module that does not fit the cluster: its
// requirements on versions and other modules, and its stage unless experimental
// modules are allowed.
func CheckEnabling(def Definition, change Change, cluster Suitability) error {
	bundle := def.EnabledByBundle()
	if change.New == nil || !change.New.enabled(bundle) || change.Old != nil && change.Old.enabled(bundle) {
		return nil
	}

	if def.Stage == experimental && !cluster.Experimental {
		return &RefusalError{Reason: fmt.Sprintf("module %s is experimental: "+
			"set settings.allowExperimentalModules to true in ModuleConfig %s first", def.Name, deckhouseConfig)}
	}

	versions := map[string]string{"deckhouse": cluster.Facts.DeckhouseVersion, "kubernetes": cluster.Facts.KubernetesVersion}
	for what, version := range versions {
		constraint, _ := def.Requirements[what].(string)
		if err := satisfies(what, version, constraint); err != nil {
			return err
		}
	}

	return checkModules(def, cluster)
}

// Suitability is what decides whether a module may be switched on.
type Suitability struct {
	Facts        ClusterFacts
	Modules      []string // the other modules that run
	Experimental bool     // experimental modules are allowed
}

// satisfies checks one version. An empty constraint holds; so does any for a cluster
// that calls itself a development build.
func satisfies(what, version, constraint string) error {
	if constraint == "" || version == "dev" {
		return nil
	}

	wanted, err := semver.NewConstraint(constraint)
	if err != nil {
		return fmt.Errorf("read requirement on %s: %w", what, err)
	}

	present, err := semver.NewVersion(version)
	if err != nil {
		return fmt.Errorf("read version of %s: %w", what, err)
	}

	if !wanted.Check(present) {
		return &RefusalError{Reason: fmt.Sprintf("the module needs %s %s, the cluster has %s", what, constraint, version)}
	}

	return nil
}

// checkModules asks for the modules that must run. Their versions are not known here.
func checkModules(def Definition, cluster Suitability) error {
	modules, _ := def.Requirements["modules"].(map[string]any)

	running := map[string]bool{}
	for _, name := range cluster.Modules {
		running[name] = true
	}

	for name, constraint := range modules {
		if text, _ := constraint.(string); strings.Contains(text, "!optional") || running[name] {
			continue
		}

		return &RefusalError{Reason: fmt.Sprintf("the module needs module %s, which is not enabled", name)}
	}

	return nil
}
