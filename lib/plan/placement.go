package plan

import (
	"fmt"
	"slices"
	"strings"
)

// placeChoice is where replicas run, and why.
type placeChoice struct {
	tier        Tier
	label       string
	tolerations []Toleration
	why         string
	verdict     Verdict
}

// placement takes the first tier that exists (F1). Existence decides, not whether there are enough nodes: a tier that
// is too small blocks and is never given up for the next one.
func placement(c Cluster, replicas int, class string) placeChoice {
	p := placeChoice{
		tier: TierMasters, label: MasterNodeLabel,
		why: "Masters, because no node has the label " + SystemS3NodeLabel + " or " + SystemNodeLabel + ".",
	}
	switch {
	case len(c.labelled(SystemS3NodeLabel)) > 0:
		p = placeChoice{tier: TierSystemS3, label: SystemS3NodeLabel, why: "Nodes with the label " + SystemS3NodeLabel + "."}
	case len(c.labelled(SystemNodeLabel)) > 0:
		p = placeChoice{
			tier: TierSystem, label: SystemNodeLabel,
			why: "Nodes with the label " + SystemNodeLabel + ", because no node has " + SystemS3NodeLabel + ".",
		}
	}
	p.tolerations = dedicated()
	if c.mastersCarry(p.label) {
		p.tolerations = append(p.tolerations, controlPlane()...)
	}
	p.verdict = fits(c.labelled(p.label), replicas, p.label)
	if s, ok := c.class(class); ok {
		p.verdict.Message += bindingWarning(s)
	}
	return p
}

// mastersCarry tells whether the nodes with the label may be masters: those of their own tier, and masters that were
// given the role of another one, which is a way out of F5 and must not end at their taint.
func (c Cluster) mastersCarry(label string) bool {
	return label == MasterNodeLabel || slices.ContainsFunc(c.Nodes, func(n Node) bool {
		return slices.Contains(n.Labels, label) && slices.Contains(n.Labels, MasterNodeLabel)
	})
}

// fits tells whether every replica has a node of its own.
func fits(nodes []string, count int, label string) Verdict {
	if len(nodes) >= count {
		return accept(ReasonPlaced, fmt.Sprintf("%s on nodes with the label %s.", replicas(count), label))
	}
	have := "none"
	if len(nodes) > 0 {
		have = fmt.Sprintf("%d (%s)", len(nodes), strings.Join(nodes, ", "))
	}
	return refuse(ReasonPlacementBlocked, fmt.Sprintf("%s with the label %s, and the cluster has %s. Ways out: %s.", needs(count), label, have, ways(count, label)))
}

// WaysOut are the ways out of having too few nodes for the plane (F5), to be named in a sentence.
func (p Plane) WaysOut() string { return ways(p.Replicas, p.NodeLabel) }

func needs(count int) string {
	if count == single {
		return "One replica needs 1 node"
	}
	return fmt.Sprintf("%s, each on a node of its own, need %d nodes", replicas(count), count)
}

// ways are the ways out of F5, as far as they lead anywhere.
func ways(count int, label string) string {
	found := []string{"give the label " + SystemS3NodeLabel + " to " + nodeCount(count)}
	if label != SystemS3NodeLabel {
		found = append(found, "add nodes with the label "+label)
	}
	if count > single {
		found = append(found, "set highAvailability: false in ModuleConfig system-s3")
	}
	if last := len(found) - 1; last > 0 {
		found[last] = "or " + found[last]
	}
	return strings.Join(found, ", ")
}

func nodeCount(n int) string {
	if n == single {
		return "a node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// dedicated tolerates nodes set aside for this module or for the platform (F2).
func dedicated() []Toleration {
	return []Toleration{
		{Key: "dedicated.deckhouse.io", Operator: "Equal", Value: "system-s3"},
		{Key: "dedicated.deckhouse.io", Operator: "Equal", Value: "system"},
	}
}

// controlPlane tolerates masters (F2).
func controlPlane() []Toleration {
	return []Toleration{
		{Key: "node-role.kubernetes.io/control-plane", Operator: "Exists"},
		{Key: "node-role.kubernetes.io/master", Operator: "Exists"},
	}
}
