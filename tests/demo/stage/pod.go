package stage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errFailed is the end of a Pod that did not succeed.
var errFailed = errors.New("the Pod failed")

// Start starts a Pod anew: one of an earlier run is deleted first.
func (s *Stage) Start(ctx context.Context, pod *corev1.Pod) error {
	if err := s.DeletePod(ctx, client.ObjectKeyFromObject(pod)); err != nil {
		return err
	}
	if err := s.Admin.Create(ctx, pod); err != nil {
		return fmt.Errorf("make Pod %s: %w", pod.Name, err)
	}
	return nil
}

// DeletePod deletes a Pod and waits until it is gone; one that is not there is no error.
func (s *Stage) DeletePod(ctx context.Context, key client.ObjectKey) error {
	const limit = 2 * time.Minute
	old := &corev1.Pod{}
	old.Namespace, old.Name = key.Namespace, key.Name
	if err := client.IgnoreNotFound(s.Deckhouse.Delete(ctx, old, client.GracePeriodSeconds(1))); err != nil {
		return fmt.Errorf("delete Pod %s: %w", key, err)
	}
	return s.Await(ctx, Wish{What: "Pod " + key.String() + " to be gone", Limit: limit, Look: func(ctx context.Context) (bool, string, error) {
		err := s.Admin.Get(ctx, key, &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		return false, "", err
	}})
}

// AwaitEnd waits until the Pod has ended. The error says that it failed.
func (s *Stage) AwaitEnd(ctx context.Context, key client.ObjectKey, limit time.Duration) error {
	phase := corev1.PodUnknown
	err := s.Await(ctx, Wish{What: "Pod " + key.Name + " to end", Limit: limit, Look: func(ctx context.Context) (bool, string, error) {
		pod := &corev1.Pod{}
		if err := s.Admin.Get(ctx, key, pod); err != nil {
			return false, "", err
		}
		phase = pod.Status.Phase
		return phase == corev1.PodSucceeded || phase == corev1.PodFailed, waiting(pod), nil
	}})
	if err != nil {
		return err
	}
	if phase != corev1.PodSucceeded {
		return fmt.Errorf("%s: %w", key, errFailed)
	}
	return nil
}

// waiting is why a container of the Pod does not run, or nothing.
func waiting(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if w := status.State.Waiting; w != nil && w.Reason != "ContainerCreating" {
			return "Pod " + pod.Name + ": " + w.Reason + " " + w.Message
		}
	}
	return ""
}

// Logs returns what a container has written; the only container when it has no name given.
func (s *Stage) Logs(ctx context.Context, key client.ObjectKey, o corev1.PodLogOptions) (string, error) {
	data, err := s.Typed.CoreV1().Pods(key.Namespace).GetLogs(key.Name, &o).DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("read the log of Pod %s: %w", key, err)
	}
	return string(data), nil
}

// Follow copies what a Pod writes, line by line as it comes, until it ends.
func (s *Stage) Follow(ctx context.Context, key client.ObjectKey) error {
	const limit = 3 * time.Minute
	err := s.Await(ctx, Wish{What: "Pod " + key.Name + " to start", Limit: limit, Look: func(ctx context.Context) (bool, string, error) {
		pod := &corev1.Pod{}
		if err := s.Admin.Get(ctx, key, pod); err != nil {
			return false, "", err
		}
		return pod.Status.Phase != corev1.PodPending, waiting(pod), nil
	}})
	if err != nil {
		return err
	}
	stream, err := s.Typed.CoreV1().Pods(key.Namespace).GetLogs(key.Name, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		return fmt.Errorf("follow the log of Pod %s: %w", key, err)
	}
	defer stream.Close() //nolint:errcheck // only read
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		s.Sayf("    %s | %s", key.Name, lines.Text())
	}
	return nil
}
