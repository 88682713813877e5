package ground

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/sandbox/command"
	"github.com/deckhouse/system-s3/tests/sandbox/node"
)

// noticed is how long kubelet may take to notice that a container ended and to start it anew: it lets one that ends
// again and again wait for minutes.
const noticed = 6 * time.Minute

var errNobody = errors.New("nobody is there to be hit")

// Pods of the app in the module's namespace.
func (g *Ground) Pods(ctx context.Context, app string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := g.Admin.List(ctx, pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: app})
	if err != nil {
		return nil, fmt.Errorf("list Pods of %s: %w", app, err)
	}
	return pods.Items, nil
}

// Any is one of the Pods of the app.
func (g *Ground) Any(ctx context.Context, app string) (*corev1.Pod, error) {
	pods, err := g.Pods(ctx, app)
	if err != nil {
		return nil, err
	}
	if len(pods) == 0 {
		return nil, fmt.Errorf("no Pod of %s: %w", app, errNobody)
	}
	return &pods[g.Dice.IntN(len(pods))], nil
}

// Leader is the Pod of the controller that may write.
func (g *Ground) Leader(ctx context.Context) (*corev1.Pod, error) {
	lease := &coordinationv1.Lease{}
	if err := g.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.LeaderLease}, lease); err != nil {
		return nil, fmt.Errorf("read the lease: %w", err)
	}
	pods, err := g.Pods(ctx, names.ControllerApp)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if holder := lease.Spec.HolderIdentity; holder != nil && strings.HasPrefix(*holder, pods[i].Name) {
			return &pods[i], nil
		}
	}
	return nil, fmt.Errorf("no controller leads: %w", errNobody)
}

// Kill ends all processes of a container at once and waits until kubelet has started it anew. The Pod stays: deleting
// one that was just started by force makes kubelet 1.34.4 panic.
func (g *Ground) Kill(ctx context.Context, pod *corev1.Pod, container string) error {
	before, err := g.Strike(ctx, pod, container)
	if err != nil {
		return err
	}
	return g.awaitRestart(ctx, client.ObjectKeyFromObject(pod), before)
}

// Strike ends all processes of a container at once and returns what it was before.
func (g *Ground) Strike(ctx context.Context, pod *corev1.Pod, container string) (corev1.ContainerStatus, error) {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != container || status.State.Running == nil {
			continue
		}
		if err := KillContainer(ctx, g.Stage, pod.Spec.NodeName, status.ContainerID); err != nil {
			return status, err
		}
		g.Sayf("killed %s of %s", container, pod.Name)
		return status, nil
	}
	return corev1.ContainerStatus{}, fmt.Errorf("container %s of %s does not run: %w", container, pod.Name, errNobody)
}

// KillContainer ends all processes of a container at once.
func KillContainer(ctx context.Context, s *stage.Stage, where, id string) error {
	socket := s.Dir.Node(where, "containerd.sock")
	return command.Run(ctx, "ctr", "--address", socket, "--namespace", "k8s.io",
		"tasks", "kill", "--signal", "SIGKILL", strings.TrimPrefix(id, "containerd://"))
}

func (g *Ground) awaitRestart(ctx context.Context, key client.ObjectKey, before corev1.ContainerStatus) error {
	what := before.Name + " of " + key.Name + " to be started anew"
	return g.Await(ctx, stage.Wish{What: what, Limit: noticed, Look: func(ctx context.Context) (bool, string, error) {
		pod := &corev1.Pod{}
		if err := g.Admin.Get(ctx, key, pod); err != nil {
			return false, "", err
		}
		for _, status := range pod.Status.ContainerStatuses {
			if status.Name == before.Name {
				return status.ContainerID != before.ContainerID && status.State.Running != nil, "", nil
			}
		}
		return false, "", nil
	}})
}

// Nodes are the nodes that have a replica on them and are not the clients' way into the cluster, in any order.
func (g *Ground) Nodes(ctx context.Context) ([]string, error) {
	pods, err := g.Pods(ctx, names.GarageApp)
	if err != nil {
		return nil, err
	}
	var nodes []string
	for _, pod := range pods {
		if name := pod.Spec.NodeName; name != "" && !strings.HasSuffix(name, "-1") {
			nodes = append(nodes, name)
		}
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("no replica on a node that may be taken away: %w", errNobody)
	}
	g.Dice.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes, nil
}

// ReplicaOn is the replica on the node.
func (g *Ground) ReplicaOn(ctx context.Context, where string) (*corev1.Pod, error) {
	pods, err := g.Pods(ctx, names.GarageApp)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if pods[i].Spec.NodeName == where {
			return &pods[i], nil
		}
	}
	return nil, fmt.Errorf("no replica on %s: %w", where, errNobody)
}

// Cordon closes a node for new Pods, or opens it.
func (g *Ground) Cordon(ctx context.Context, name string, closed bool) error {
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, closed))
	if err := g.Admin.Patch(ctx, object, patch); err != nil {
		return fmt.Errorf("cordon %s: %w", name, err)
	}
	return nil
}

// Sandbox runs a verb of the sandbox.
func (g *Ground) Sandbox(ctx context.Context, verb ...string) error {
	program := filepath.Join(g.Builds.Source(), "..", "..", "bin", "sandbox")
	if own := os.Getenv("SANDBOX"); own != "" {
		program = own
	}
	return command.Run(ctx, program, verb...)
}

// Touch changes the template of the replicas, so that each has to be restarted.
func (g *Ground) Touch(ctx context.Context) error {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.GarageObject(plane)}}
	change := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"tour":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	if err := g.Deckhouse.Patch(ctx, set, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
		return fmt.Errorf("change the template: %w", err)
	}
	return nil
}

// Restarted is how many ready replicas run the newest template, and how many are ready at all.
func (g *Ground) Restarted(ctx context.Context) (newest, ready int, err error) {
	sets, err := g.sets(ctx)
	if err != nil {
		return 0, 0, err
	}
	pods, err := g.Pods(ctx, names.GarageApp)
	if err != nil {
		return 0, 0, err
	}
	revisions := map[string]bool{}
	for i := range sets {
		if sets[i].Status.ObservedGeneration == sets[i].Generation {
			revisions[sets[i].Status.UpdateRevision] = true
		}
	}
	for i := range pods {
		if !Ready(&pods[i]) {
			continue
		}
		ready++
		if revisions[pods[i].Labels[appsv1.ControllerRevisionHashLabelKey]] {
			newest++
		}
	}
	return newest, ready, nil
}

// Ready tells whether the Pod serves and is not about to end.
func Ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp.IsZero()
		}
	}
	return false
}

func (g *Ground) sets(ctx context.Context) ([]appsv1.StatefulSet, error) {
	list := &appsv1.StatefulSetList{}
	if err := g.Admin.List(ctx, list, client.InNamespace(names.Namespace)); err != nil {
		return nil, fmt.Errorf("list StatefulSets: %w", err)
	}
	return list.Items, nil
}

// Cable connects a node with everything else, "up", or cuts it off, "down".
func (g *Ground) Cable(ctx context.Context, name, state string) error {
	n, err := node.Parse(name)
	if err != nil {
		return err
	}
	return command.Quick(ctx, "ip", "link", "set", n.Address.Link(), state)
}
