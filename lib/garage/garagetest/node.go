package garagetest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/names"
)

const stopTimeout = 20 * time.Second

// Node is one Garage process with its folder.
type Node struct {
	ID  string // 64 hexadecimal digits
	Dir string // holds garage.toml, garage.log, meta and data
	// RPCAddress is `<id>@<host>:<port>`, the form of ConnectClusterNodes.
	RPCAddress string

	name           string
	rpc, admin, s3 string
	key            ed25519.PrivateKey
	binary         string
	process        *exec.Cmd
	exited         chan struct{}
}

// AdminURL is the node's admin API.
func (n *Node) AdminURL() string { return "http://" + n.admin }

// S3URL is the node's S3 API.
func (n *Node) S3URL() string { return "http://" + n.s3 }

func newNode(t testing.TB, ordinal int) *Node {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	host := loopback(t)
	n := &Node{
		ID: hex.EncodeToString(public), Dir: t.TempDir(), name: names.GaragePod("test", ordinal), key: key,
		rpc: freePort(t, host), admin: freePort(t, host), s3: freePort(t, host),
	}
	n.RPCAddress = n.ID + "@" + n.rpc
	return n
}

// loopback is a loopback address that is most likely nobody else's: clusters of tests that run at once then don't
// compete for ports, nor with the ports of outgoing connections.
func loopback(t testing.TB) string {
	t.Helper()
	random := randomBytes(t)
	const highest = 254
	octet := func(i int) string { return strconv.Itoa(1 + int(random[i])%highest) }
	return "127." + octet(0) + "." + octet(1) + "." + octet(2) //nolint:mnd // three octets
}

func freePort(t testing.TB, host string) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}

func (n *Node) prepare(t testing.TB, c *Cluster) {
	t.Helper()
	n.binary = c.binary
	meta := filepath.Join(n.Dir, "meta")
	require.NoError(t, os.MkdirAll(meta, 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(n.Dir, "data"), 0o700))
	public, _ := n.key.Public().(ed25519.PublicKey)
	require.NoError(t, os.WriteFile(filepath.Join(meta, "node_key"), n.key, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(meta, "node_key.pub"), public, 0o600))
	n.configure(t, c)
}

func (n *Node) configure(t testing.TB, c *Cluster) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(n.Dir, "garage.toml"), []byte(n.config(c)), 0o600))
}

func (n *Node) config(c *Cluster) string {
	return fmt.Sprintf(`metadata_dir = %q
data_dir = %q
db_engine = "lmdb"
replication_factor = %d
rpc_bind_addr = %q
rpc_public_addr = %q
rpc_secret = %q
rpc_timeout_msec = %d
bootstrap_peers = [%s]

[s3_api]
api_bind_addr = %q
s3_region = %q

[admin]
api_bind_addr = %q
admin_token = %q
metrics_token = %q
`,
		filepath.Join(n.Dir, "meta"), filepath.Join(n.Dir, "data"), c.factor,
		n.rpc, n.rpc, c.rpcSecret, c.rpcTimeout, c.bootstrapPeers(),
		n.s3, names.GarageRegion, n.admin, c.AdminToken, c.MetricsToken)
}

// Start starts the node's process and arranges for its end. It does not wait for an answer.
func (n *Node) Start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(n.Dir, "garage.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	//nolint:gosec,noctx // the binary is the one under test, and it is ended by Stop, not by a context
	process := exec.Command(n.binary, "-c", filepath.Join(n.Dir, "garage.toml"), "server")
	process.Stdout, process.Stderr = log, log
	process.Env = []string{"RUST_LOG=garage=info"}
	// A killed test leaves no Garage behind.
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, process.Start())
	n.process, n.exited = process, make(chan struct{})
	go func(exited chan struct{}) {
		defer close(exited)
		_ = process.Wait() // its end is asked for by a signal, and garage.log tells any other
		_ = log.Close()
	}(n.exited)
	t.Cleanup(func() {
		n.Kill()
		if t.Failed() {
			n.showLog(t)
		}
	})
}

// Kill ends the node's process at once, as a crash would; a killed node stays down until Start.
func (n *Node) Kill() {
	if n.process == nil {
		return
	}
	_ = n.process.Process.Kill() // fails only when the process is gone, and that is the wanted state
	<-n.exited
	n.process = nil
}

// Stop asks the node's process to end and waits for its end; a stopped node stays down until Start. Garage takes 10
// seconds for it while HTTP connections are open, idle ones included.
func (n *Node) Stop() {
	if n.process == nil {
		return
	}
	_ = n.process.Process.Signal(syscall.SIGTERM) // fails only when the process is gone
	select {
	case <-n.exited:
	case <-time.After(stopTimeout):
		_ = n.process.Process.Kill()
		<-n.exited
	}
	n.process = nil
}

// Ended tells whether the node's process ended by itself.
func (n *Node) Ended() bool {
	select {
	case <-n.exited:
		return true
	default:
		return false
	}
}

// Pause makes the node hang until Resume: connections are taken and nothing is answered.
func (n *Node) Pause(t testing.TB) {
	t.Helper()
	require.NoError(t, n.process.Process.Signal(syscall.SIGSTOP))
}

// Resume lets the node go on.
func (n *Node) Resume(t testing.TB) {
	t.Helper()
	require.NoError(t, n.process.Process.Signal(syscall.SIGCONT))
}

const shownLog = 8 << 10 // bytes of a log's end

func (n *Node) showLog(t testing.TB) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(n.Dir, "garage.log"))
	if err != nil {
		t.Logf("read the log of %s: %v", n.name, err)
		return
	}
	t.Logf("end of the log of %s (%s):\n%s", n.name, n.ID[:16], log[max(0, len(log)-shownLog):])
}

const secretLength = 32 // bytes

func randomBytes(t testing.TB) []byte {
	t.Helper()
	return randomBytesOf(t, secretLength)
}

func randomBytesOf(t testing.TB, length int) []byte {
	t.Helper()
	random := make([]byte, length)
	_, err := rand.Read(random)
	require.NoError(t, err)
	return random
}

func randomHex(t testing.TB) string {
	t.Helper()
	return hex.EncodeToString(randomBytes(t))
}
