package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/deckhouse/system-s3/tests/sandbox/node"
)

const (
	defaultMasters = 1
	defaultNodes   = 3
)

// Options say how large the cluster is. Zero means: as it is, or the default for a
// new one (three nodes, one of them a master).
type Options struct {
	Masters int `json:"masters"`
	Nodes   int `json:"nodes"`
}

var errOptions = errors.New("there must be at least one master and not more masters than nodes")

func (o Options) orElse(other Options) Options {
	if o.Masters == 0 {
		o.Masters = other.Masters
	}

	if o.Nodes == 0 {
		o.Nodes = other.Nodes
	}

	return o
}

// remember completes the options from those of the last run and keeps them for the
// next: a bare "up" then changes nothing.
func (c Cluster) remember(o Options) (Options, error) {
	path := c.Dir.Path("options.json")

	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Options{}, fmt.Errorf("read the options: %w", err)
	}

	var last Options
	if len(data) > 0 {
		if err := json.Unmarshal(data, &last); err != nil {
			return Options{}, fmt.Errorf("decode the options: %w", err)
		}
	}

	o = o.orElse(last).orElse(Options{Masters: defaultMasters, Nodes: defaultNodes})
	if o.Masters < 1 || o.Masters > o.Nodes {
		return Options{}, errOptions
	}

	if data, err = json.Marshal(o); err != nil {
		return Options{}, fmt.Errorf("encode the options: %w", err)
	}

	if err := os.WriteFile(path, data, 0o600); err != nil {
		return Options{}, fmt.Errorf("write the options: %w", err)
	}

	return o, nil
}

// wanted lists the nodes that the options ask for: node-1 and so on.
func (o Options) wanted() ([]node.Node, error) {
	nodes := make([]node.Node, 0, o.Nodes)

	for number := 1; number <= o.Nodes; number++ {
		n, err := node.Parse("node-" + strconv.Itoa(number))
		if err != nil {
			return nil, fmt.Errorf("name the nodes: %w", err)
		}

		nodes = append(nodes, n)
	}

	return nodes, nil
}
