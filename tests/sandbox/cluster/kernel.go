package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// kernelSettings are the settings of the whole machine that kubelets change. They
// are put back in the end.
func kernelSettings() []string {
	return []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	}
}

func kernelFile(setting string) string { return filepath.Join("/proc/sys", setting) }

// rememberKernel writes the settings down unless an earlier run has done so.
func (c Cluster) rememberKernel() error {
	path := c.Dir.Path("kernel.json")
	if _, err := os.Stat(path); err == nil {
		return nil
	}

	values := map[string]string{}

	for _, setting := range kernelSettings() {
		value, err := os.ReadFile(kernelFile(setting))
		if err != nil {
			continue // this kernel does not have it
		}

		values[setting] = string(value)
	}

	data, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("encode the kernel's settings: %w", err)
	}

	// At once or not at all: half of it would hide that the rest is unknown.
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("write the kernel's settings: %w", err)
	}

	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write the kernel's settings: %w", err)
	}

	return nil
}

// restoreKernel puts the settings back.
func (c Cluster) restoreKernel() error {
	data, err := os.ReadFile(c.Dir.Path("kernel.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("read the kernel's settings: %w", err)
	}

	var values map[string]string
	if err := json.Unmarshal(data, &values); err != nil {
		return fmt.Errorf("decode the kernel's settings: %w", err)
	}

	for setting, value := range values {
		if err := os.WriteFile(kernelFile(setting), []byte(value), 0); err != nil {
			return fmt.Errorf("put %s back: %w", setting, err)
		}
	}

	return nil
}
