// Package preparation makes a Garage node's volume and memory ready before Garage starts: the identity made beforehand,
// the secrets of the epoch, and, when the epoch has risen, the old layout out of the way. Every step is repeatable, so
// that a run killed anywhere is completed by the next one.
package preparation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/names"
)

// Files in the metadata directory that Garage owns, and the record of the epoch beside it.
const (
	nodeKeyFile   = "node_key"
	publicKeyFile = "node_key.pub"
	epochFile     = "epoch"
)

// layoutFiles are what ties a node to its cluster's past.
func layoutFiles() []string { return []string{"cluster_layout", "peer_list"} }

// Config is where things are and who the node is.
type Config struct {
	MetadataDir string // Garage's metadata_dir; the epoch is recorded in its parent
	RunDir      string // in memory; gets rpc_secret, admin_token and metrics_token
	PlaneDir    string // the plane's Secret as mounted
	PodName     string // ends in the ordinal, which picks the identity
	Epoch       int    // from 1
	// ConfigFile is Garage's configuration as mounted. Garage runs with a copy: when it is restarted without its Pod, it
	// must not meet the configuration of the next epoch.
	ConfigFile string
}

// Run prepares the node. It refuses, changing nothing, when the volume has seen a higher epoch or carries another
// node's identity.
func Run(c Config) error {
	steps, err := c.steps()
	if err != nil {
		return err
	}
	for _, s := range steps {
		if err := s.run(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// step is one change of the disk, atomic and repeatable.
type step struct {
	name string
	run  func() error
}

// steps observes and decides; nothing is changed before every refusal had its chance.
func (c Config) steps() ([]step, error) {
	if c.Epoch < 1 {
		return nil, fmt.Errorf("epoch %d: epochs start at 1", c.Epoch)
	}
	plane, err := readPlane(c)
	if err != nil {
		return nil, err
	}
	config, err := os.ReadFile(c.ConfigFile)
	if err != nil {
		return nil, fmt.Errorf("read Garage's configuration: %w", err)
	}
	recorded, err := c.recordedEpoch()
	if err != nil {
		return nil, err
	}
	if recorded > c.Epoch {
		return nil, fmt.Errorf("the volume has already served epoch %d, higher than the configured %d: refusing to go back", recorded, c.Epoch)
	}
	if err := c.checkIdentity(plane.key); err != nil {
		return nil, err
	}

	named, err := c.nameContent()
	if err != nil {
		return nil, err
	}

	steps := []step{{"make the metadata directory", func() error { return makeDir(c.MetadataDir) }}}
	if recorded < c.Epoch {
		// The record comes after the move: killed in between, the next run moves what is left.
		for _, name := range layoutFiles() {
			steps = append(steps, step{"move " + name + " aside", func() error {
				return moveAside(c.MetadataDir, name, ".epoch-"+strconv.Itoa(recorded))
			}})
		}
		steps = append(steps, c.write("record the epoch", c.epochPath(), []byte(strconv.Itoa(c.Epoch)+"\n")))
	}
	return append(append(steps, named...),
		c.write("write the public key", filepath.Join(c.MetadataDir, publicKeyFile), plane.key.public()),
		c.write("write the node key", filepath.Join(c.MetadataDir, nodeKeyFile), plane.key),
		step{"make the run directory", func() error { return makeDir(c.RunDir) }},
		c.write("write the configuration", filepath.Join(c.RunDir, filepath.Base(c.ConfigFile)), config),
		c.write("write the RPC secret", filepath.Join(c.RunDir, "rpc_secret"), []byte(access.RPCSecret(plane.rpcSecret, c.Epoch))),
		c.write("write the admin token", filepath.Join(c.RunDir, "admin_token"), plane.adminToken),
		c.write("write the metrics token", filepath.Join(c.RunDir, "metrics_token"), plane.metricsToken),
	), nil
}

func (Config) write(name, path string, data []byte) step {
	return step{name, func() error { return writeFile(path, data) }}
}

func (c Config) epochPath() string { return filepath.Join(filepath.Dir(c.MetadataDir), epochFile) }

// recordedEpoch is 0 on a volume that has none. A record that cannot be read is an error: what the volume has seen is
// then unknown.
func (c Config) recordedEpoch() (int, error) {
	data, err := os.ReadFile(c.epochPath())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the recorded epoch: %w", err)
	}
	epoch, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || epoch < 1 {
		return 0, fmt.Errorf("the record of the epoch in %s is damaged: write the epoch's number there by hand", c.epochPath())
	}
	return epoch, nil
}

// checkIdentity refuses a volume of another node: two nodes would swap their places in the layout.
func (c Config) checkIdentity(want nodeKey) error {
	have, err := os.ReadFile(filepath.Join(c.MetadataDir, nodeKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the node key of the volume: %w", err)
	}
	// A torn file names nobody and is written again.
	if len(have) == nodeKeySize && nodeKey(have).id() != want.id() {
		return fmt.Errorf("the volume belongs to another Garage node: it carries the identity %s, %s must be %s",
			nodeKey(have).id(), c.PodName, want.id())
	}
	return nil
}

// Ordinal is the number at the end of a StatefulSet's Pod name.
func Ordinal(podName string) (int, error) {
	cut := strings.LastIndex(podName, "-")
	ordinal, err := strconv.Atoi(podName[cut+1:])
	if cut < 1 || err != nil {
		return 0, fmt.Errorf("the Pod name %q does not end in an ordinal", podName)
	}
	return ordinal, nil
}

// plane is what the node needs of the plane's Secret.
type plane struct {
	key          nodeKey
	rpcSecret    []byte
	adminToken   []byte
	metricsToken []byte
}

func readPlane(c Config) (plane, error) {
	ordinal, err := Ordinal(c.PodName)
	if err != nil {
		return plane{}, err
	}
	files := os.DirFS(c.PlaneDir)
	read := func(key string) []byte {
		data, readErr := fs.ReadFile(files, key)
		if readErr != nil {
			err = errors.Join(err, fmt.Errorf("read the plane's secret: %w", readErr))
		}
		return data
	}
	p := plane{
		key:          read(names.NodeKeyKey(ordinal)),
		adminToken:   trim(read(names.AdminTokenKey)),
		metricsToken: trim(read(names.MetricsTokenKey)),
	}
	rpcSecret := trim(read(names.RPCSecretKey))
	if err != nil {
		return plane{}, err
	}
	if err := p.key.validate(); err != nil {
		return plane{}, fmt.Errorf("%s of the plane's secret: %w", names.NodeKeyKey(ordinal), err)
	}
	if p.rpcSecret, err = decodeHex(rpcSecret); err != nil {
		return plane{}, fmt.Errorf("%s of the plane's secret: %w", names.RPCSecretKey, err)
	}
	if len(p.adminToken) == 0 || len(p.metricsToken) == 0 {
		return plane{}, errors.New("the plane's secret has an empty token")
	}
	return p, nil
}
