package serving

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
)

// process is the gateway as a program of its own.
type process struct {
	cmd  *exec.Cmd
	logs *bytes.Buffer
	done chan error
}

func startProcess(t *testing.T, r *rig, s3Address, adminAddress string) *process {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "gateway")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "github.com/deckhouse/system-s3/images/gateway")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	c := r.config
	p := &process{logs: &bytes.Buffer{}, done: make(chan error, 1), cmd: exec.CommandContext(t.Context(), binary, "serve",
		"--s3-address", s3Address, "--admin-address", adminAddress, "--metrics-address", freeAddress(t), "--tls-dir", c.TLSDir, "--key-ring", c.RingFile,
		"--plane-dir", c.PlaneDir, "--volume-dir", c.VolumeDir, "--garage-s3", c.GarageS3, "--garage-admin", c.GarageAdmin,
		"--drain-delay", "10ms")}
	p.cmd.Stdout, p.cmd.Stderr = p.logs, p.logs
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, p.cmd.Start())
	go func() { p.done <- p.cmd.Wait() }()
	return p
}

// peak is the most memory that was resident, in bytes.
func (p *process) peak(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	require.True(t, found)
	var kib int64
	_, err = fmt.Sscan(rest, &kib)
	require.NoError(t, err)
	return kib << 10
}

func freeAddress(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}

func TestTheProgramStaysSmallUnderParallelUploads(t *testing.T) {
	const uploads, size, limit = 64, 16 << 20, 64 << 20
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	address := freeAddress(t)
	p := startProcess(t, r, address, freeAddress(t))
	r.dialTo = address
	client := r.s3(r.key(testBucket, access.ReadWrite))
	eventually(t, "the program serves", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return listing(testBucket)(ctx, r.s3(r.key(testBucket, access.Read), noRetry)) == nil
	})
	data := pattern(size)
	var running sync.WaitGroup
	errs := make(chan error, uploads)
	for i := range uploads {
		running.Go(func() {
			_, err := client.PutObject(t.Context(), &s3.PutObjectInput{
				Bucket: aws.String(testBucket), Key: aws.String(fmt.Sprint("upload-", i)), Body: bytes.NewReader(data),
			})
			errs <- err
		})
	}
	running.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	peak := p.peak(t)
	t.Logf("%d uploads of %d MiB at once: %d MiB resident at most", uploads, size>>20, peak>>20)
	require.Less(t, peak, int64(limit))

	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-p.done:
		require.NoError(t, err, p.logs.String())
	case <-time.After(waitLimit):
		t.Fatalf("the program does not stop:\n%s", p.logs.String())
	}
}
