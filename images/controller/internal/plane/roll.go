package plane

import (
	"context"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/names"
)

// proofInterval is how often the nodes are asked how far their copies are: each question costs Garage about 18 ms of
// CPU for the token alone.
const proofInterval = 3 * time.Second

// unmarkedRPCTimeout is what Pods run with that do not tell it: versions before the annotation knew no other value.
const unmarkedRPCTimeout = time.Minute

// roll restarts the replica whose turn it is. What it returns is told to people; empty when all replicas run the
// present template.
func (r *Reconciler) roll(ctx context.Context, f facts, a access) (string, error) {
	if f.Plane.Frozen != "" || f.anyBehind(f.all()) {
		return "", nil // the chart leaves it alone, and so do we; or a change of the epoch restarts all
	}
	marked, err := r.markOutdated(ctx, f)
	if err != nil {
		return "", err
	}
	if err := r.rollSpares(ctx, marked); err != nil {
		return "", err
	}
	turn := layout.Roll(rollable(marked))
	switch turn.Kind {
	case layout.Replace:
		return turn.Message, r.restart(ctx, marked, turn)
	case layout.ReplaceProof:
		gate := r.prove(ctx, marked, a)
		if gate.Open {
			return fmt.Sprintf("%s; %s is restarted.", turn.Message, turn.Pod), r.restart(ctx, marked, turn)
		}
		return fmt.Sprintf("%s, one after the other; before %s can be restarted: %s.", turn.Message, turn.Pod, gate.Message), nil
	case layout.Rest, layout.Hold:
	}
	delete(r.proofs, f.Plane.ID)
	return turn.Message, nil
}

// markOutdated compares the Pods with the StatefulSet. Without its newest word nobody is outdated.
func (r *Reconciler) markOutdated(ctx context.Context, f facts) (facts, error) {
	var set appsv1.StatefulSet
	key := client.ObjectKey{Namespace: names.Namespace, Name: names.GarageObject(f.Plane.ID)}
	if err := r.Client.Get(ctx, key, &set); err != nil {
		return f, client.IgnoreNotFound(err)
	}
	if set.Status.ObservedGeneration != set.Generation || set.Status.UpdateRevision == "" || set.DeletionTimestamp != nil {
		return f, nil
	}
	marked := f
	marked.Replicas, marked.Spares = outdated(f.Replicas, set), outdated(f.Spares, set)
	return marked, nil
}

func outdated(replicas []replica, set appsv1.StatefulSet) []replica {
	marked := append([]replica(nil), replicas...)
	for i := range marked {
		each := &marked[i]
		each.Outdated = each.Revision != "" && each.Revision != set.Status.UpdateRevision
	}
	return marked
}

// rollSpares restarts replicas without a role, which serve nobody.
func (r *Reconciler) rollSpares(ctx context.Context, f facts) error {
	pods := []string{}
	for _, each := range f.Spares {
		if each.Outdated && each.Exists {
			pods = append(pods, each.Pod)
		}
	}
	return r.restartAll(ctx, f, pods)
}

func rollable(f facts) []layout.Replica {
	replicas := make([]layout.Replica, 0, len(f.Replicas))
	for _, r := range f.Replicas {
		replicas = append(replicas, layout.Replica{
			Pod: r.Pod, Exists: r.Exists, Ready: r.Ready, Outdated: r.Outdated, Trouble: r.Trouble,
		})
	}
	return replicas
}

// prove goes one step on with the proof that every replica holds all copies.
func (r *Reconciler) prove(ctx context.Context, f facts, a access) layout.Gate {
	return r.proveAs(ctx, f, a, f.Plane.ID)
}

// proveAs goes on with the proof that is kept under the key.
func (r *Reconciler) proveAs(ctx context.Context, f facts, a access, key string) layout.Gate {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	evidence, nodes := r.evidence(ctx, f, a)
	gate := layout.Prove(r.proofs[key], evidence)
	if gate.Request != layout.NoRequest {
		log.FromContext(ctx).Info("proof of all copies", "plane", f.Plane.ID, "message", gate.Message)
	}
	if err := backend.Ask(ctx, nodes, gate.Request); err != nil {
		log.FromContext(ctx).Info("a node did not take a request, the proof starts over", "plane", f.Plane.ID, "error", err.Error())
		gate.Proof = layout.Proof{}
	}
	r.proofs[key] = gate.Proof
	return gate
}

// restart deletes the Pod, which its StatefulSet makes again from the present template with the same volume. The
// Pod's UID guards against deleting its successor.
func (r *Reconciler) restart(ctx context.Context, f facts, turn layout.Turn) error {
	delete(r.proofs, f.Plane.ID)
	for _, each := range f.Replicas {
		if each.Pod != turn.Pod {
			continue
		}
		log.FromContext(ctx).Info("restart of a replica", "pod", turn.Pod, "message", turn.Message)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: turn.Pod}}
		err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &each.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("restart %s: %w", turn.Pod, err)
		}
	}
	return nil
}

// describeRun takes from a Pod what a restart depends on.
func describeRun(r replica, pod corev1.Pod) replica {
	r.UID, r.Epoch = pod.UID, podEpoch(pod)
	r.Revision = pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	r.RPCTimeout = unmarkedRPCTimeout
	if msec, err := strconv.Atoi(pod.Annotations[names.RPCTimeoutAnnotation]); err == nil && msec > 0 {
		r.RPCTimeout = time.Duration(msec) * time.Millisecond
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == names.GarageContainer && status.State.Running != nil {
			r.Run = status.ContainerID
		}
	}
	r.Trouble = trouble(pod)
	return r
}

// trouble is what keeps a Pod from being ready, in Kubernetes' words.
func trouble(pod corev1.Pod) string {
	statuses := append(append([]corev1.ContainerStatus(nil), pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
	for _, status := range statuses {
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing" {
			return fmt.Sprintf("container %s: %s", status.Name, waiting.Reason)
		}
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
			return fmt.Sprintf("container %s ended with code %d", status.Name, ended.ExitCode)
		}
	}
	return ""
}
