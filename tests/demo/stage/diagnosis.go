package stage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
)

// tail is how many lines of a log are shown.
const tail = int64(40)

// Diagnose writes everything that explains a failure: the module's conditions, and for each namespace its Pods, the
// ends of their logs and the events. It tells what it can.
func (s *Stage) Diagnose(ctx context.Context, namespaces ...string) {
	s.Sayf("\n===== what explains it =====")
	conditions, err := s.Conditions(ctx)
	if err != nil {
		s.Sayf("Module: %v", err)
	}
	for _, c := range conditions {
		s.Sayf("Module: %s", c)
	}
	for _, namespace := range append([]string{names.Namespace}, namespaces...) {
		s.diagnosePods(ctx, namespace)
		s.diagnoseEvents(ctx, namespace)
	}
	s.Sayf("addon-operator, which runs the module's hooks and chart: %s", s.Dir.Log("addon-operator"))
}

func (s *Stage) diagnosePods(ctx context.Context, namespace string) {
	pods, err := s.Typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		s.Sayf("Pods of %s: %v", namespace, err)
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		s.Sayf("\n----- Pod %s/%s: %s on %s", namespace, pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		for _, c := range pod.Status.Conditions {
			if c.Status != corev1.ConditionTrue {
				s.Sayf("  %s=%s %s %s", c.Type, c.Status, c.Reason, c.Message)
			}
		}
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			s.diagnoseContainer(ctx, pod, status)
		}
	}
}

func (s *Stage) diagnoseContainer(ctx context.Context, pod *corev1.Pod, status corev1.ContainerStatus) {
	s.Sayf("  container %s: ready=%t restarts=%d %s", status.Name, status.Ready, status.RestartCount, state(status.State))
	lines := tail
	options := corev1.PodLogOptions{Container: status.Name, TailLines: &lines}
	log, err := s.Logs(ctx, client.ObjectKeyFromObject(pod), options)
	if err != nil {
		log = err.Error()
	}
	if status.RestartCount > 0 {
		options.Previous = true
		if before, err := s.Logs(ctx, client.ObjectKeyFromObject(pod), options); err == nil {
			log = "(before the restart)\n" + before + "(since)\n" + log
		}
	}
	for line := range strings.Lines(log) {
		s.Sayf("    %s", strings.TrimRight(line, "\n"))
	}
}

func state(c corev1.ContainerState) string {
	switch {
	case c.Waiting != nil:
		return "waiting: " + c.Waiting.Reason + " " + c.Waiting.Message
	case c.Terminated != nil:
		return fmt.Sprintf("ended with %d: %s %s", c.Terminated.ExitCode, c.Terminated.Reason, c.Terminated.Message)
	default:
		return "running"
	}
}

func (s *Stage) diagnoseEvents(ctx context.Context, namespace string) {
	events, err := s.Typed.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		s.Sayf("events of %s: %v", namespace, err)
		return
	}
	s.Sayf("\n----- events of %s", namespace)
	for i := range events.Items {
		e := &events.Items[i]
		if e.Type != corev1.EventTypeNormal {
			s.Sayf("  %s %s/%s %s: %s", e.CreationTimestamp.Format("15:04:05"), e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
}
