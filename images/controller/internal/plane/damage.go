package plane

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/lib/names"
)

// Logs reads the end of the log of a replica's Garage: of the process that runs or ran last, or of the one before it.
type Logs interface {
	Tail(ctx context.Context, pod string, previous bool) (string, error)
}

// PodLogs reads them from Kubernetes.
type PodLogs struct{ Client kubernetes.Interface }

const (
	tailLines = 100
	tailBytes = 16 << 10
)

// Tail implements Logs.
func (l PodLogs) Tail(ctx context.Context, pod string, previous bool) (string, error) {
	stream, err := l.Client.CoreV1().Pods(names.Namespace).GetLogs(pod, &corev1.PodLogOptions{
		Container: names.GarageContainer, Previous: previous, TailLines: ptr.To[int64](tailLines), LimitBytes: ptr.To[int64](tailBytes),
	}).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("read the log of %s: %w", pod, err)
	}
	defer func() { _ = stream.Close() }()
	text, err := io.ReadAll(stream)
	if err != nil {
		return "", fmt.Errorf("read the log of %s: %w", pod, err)
	}
	return string(text), nil
}

// end is what is known of why a Garage process ended.
type end struct {
	process string // its container's id
	damage  string
}

// recent is how long a process may run after one that could not read its database and still be taken for one that cannot.
const recent = 2 * time.Minute

// damage is Garage's own word that it cannot read its database; empty when it does not say so. Its log is read once for
// each process that ended, and kept in no status: a panic's last 2 KiB, which Kubernetes would keep, are its backtrace.
func (r *Reconciler) damage(ctx context.Context, pod corev1.Pod) string {
	ended, previous := lastEnd(pod, time.Now())
	if ended == nil || r.Logs == nil {
		return ""
	}
	if known := r.memory.ends[pod.Name]; known.process == ended.ContainerID {
		return known.damage
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	text, err := r.Logs.Tail(ctx, pod.Name, previous)
	if err != nil {
		log.FromContext(ctx).Info("why Garage ended is not known", "pod", pod.Name, "error", err.Error())
		return ""
	}
	r.memory.ends[pod.Name] = end{process: ended.ContainerID, damage: unreadable(text)}
	return r.memory.ends[pod.Name].damage
}

// lastEnd is how the Garage of a Pod ended that does not run or has just begun to run again, and whether the log of that
// process is the one before the present.
func lastEnd(pod corev1.Pod, now time.Time) (ended *corev1.ContainerStateTerminated, previous bool) {
	for _, status := range pod.Status.ContainerStatuses {
		switch {
		case status.Name != names.GarageContainer:
		case status.State.Running != nil && now.Sub(status.State.Running.StartedAt.Time) > recent:
		case status.State.Terminated != nil && status.State.Terminated.ExitCode != 0:
			return status.State.Terminated, false
		case status.LastTerminationState.Terminated != nil && status.LastTerminationState.Terminated.ExitCode != 0:
			return status.LastTerminationState.Terminated, true
		}
	}
	return nil, false
}

// unreadable is LMDB's word for a file that is not what it wrote, as Garage 2.5.0 passes it on: with "Cannot open LMDB
// database" when its head is damaged, in a panic when another page is. A full disk has other words, and a database that was
// cut short none: the process ends by SIGBUS, for which the disk may be the reason as well.
func unreadable(text string) string {
	if found := damagedDatabase.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

var damagedDatabase = regexp.MustCompile(`LMDB[^\n]*(MDB_INVALID|MDB_CORRUPTED|MDB_PAGE_NOTFOUND)`)
