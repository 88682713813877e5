package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/deckhouse/system-s3/tests/sandbox/node"
)

const (
	defaultMasters = 1
	defaultNodes   = 3
	optionsFile    = "options.json"
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
	data, err := fs.ReadFile(os.DirFS(string(c.Dir)), optionsFile)
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

	if err := os.WriteFile(c.Dir.Path(optionsFile), data, 0o600); err != nil {
		return Options{}, fmt.Errorf("write the options: %w", err)
	}

	return o, nil
}

// wanted lists the nodes that there shall be: those that exist, added by hand or asked
// for earlier, and node-1 and so on until there are as many as the options ask for. A
// smaller number than before takes no node away.
func (o Options) wanted(existing []node.Node) ([]node.Node, error) {
	nodes := slices.Clone(existing)

	for number := 1; number <= o.Nodes; number++ {
		if slices.ContainsFunc(existing, func(n node.Node) bool { return n.Address.Number == number }) {
			continue // perhaps under a name of its own
		}

		n, err := node.Parse("node-" + strconv.Itoa(number))
		if err != nil {
			return nil, fmt.Errorf("name the nodes: %w", err)
		}

		nodes = append(nodes, n)
	}

	slices.SortFunc(nodes, byNumber)

	return nodes, nil
}

// role of a node.
type role int

const (
	worker role = iota
	master
	unchanged // whatever it was given when it was added
)

// role of a node by its number: the first are masters; the options say nothing about
// those beyond their number.
func (o Options) role(n node.Node) role {
	switch {
	case n.Address.Number > o.Nodes:
		return unchanged
	case n.Address.Number <= o.Masters:
		return master
	default:
		return worker
	}
}

func byNumber(a, b node.Node) int { return a.Address.Number - b.Address.Number }
