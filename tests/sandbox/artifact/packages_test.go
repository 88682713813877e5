package artifact

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPolicy(t *testing.T) {
	t.Parallel()

	ended := exec.CommandContext(t.Context(), "true")
	require.NoError(t, ended.Run())

	cases := map[string]struct {
		reason, service string
		pid, code       int
	}{
		"unit":        {reason: "the name of systemd", service: "containerd.service", pid: os.Getpid(), code: 101},
		"script":      {reason: "the older name", service: "etcd", pid: os.Getpid(), code: 101},
		"other":       {reason: "another package that is installed meanwhile", service: "nginx.service", pid: os.Getpid()},
		"killed":      {reason: "a leftover forbids nothing", service: "etcd", pid: ended.Process.Pid},
		"no argument": {reason: "a question that makes no sense", pid: os.Getpid()},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			file := filepath.Join(t.TempDir(), "policy")
			require.NoError(t, os.WriteFile(file, []byte(policy(c.pid)), 0o600))

			cmd := exec.CommandContext(t.Context(), "sh", file, c.service, "start")
			_ = cmd.Run()
			assert.Equal(t, c.code, cmd.ProcessState.ExitCode(), c.reason)
		})
	}
}

func TestListed(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "partial"), 0o700))
	assert.False(t, listed(folder), "a machine that was just made")

	require.NoError(t, os.WriteFile(filepath.Join(folder, "host_dists_stable_main_binary-amd64_Packages.lz4"), nil, 0o600))
	assert.True(t, listed(folder))
}
