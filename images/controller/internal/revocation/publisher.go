package revocation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/names"
)

// pushTimeout bounds the telling of one gateway.
const pushTimeout = 10 * time.Second

// Gateways leads to gateways by the IPs of their Pods.
type Gateways interface {
	Address(podIP string) backend.Address
	Client(ca string) (*http.Client, error)
}

// Push tells every gateway of every plane. A gateway that could not be told is told with the next list, which comes
// soon; one that was restarted gets the list the same way.
type Push struct {
	Reader   client.Reader
	Gateways Gateways
	Log      logr.Logger

	mu     sync.Mutex
	failed map[string]bool // names of Pods, to tell of each failure once
}

// Publish sends the list to all gateways at the same time.
func (p *Push) Publish(ctx context.Context, list []entry) {
	body, err := json.Marshal(map[string][]entry{"revoked": list})
	if err != nil {
		p.Log.Error(err, "encode the list of lost rights")
		return
	}
	var pods corev1.PodList
	err = p.Reader.List(ctx, &pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.GarageApp})
	if err != nil {
		p.Log.Info("gateways not found, trying again", "reason", err.Error())
		return
	}
	var telling sync.WaitGroup
	for _, pod := range pods.Items {
		if pod.Status.PodIP == "" || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		telling.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, pushTimeout)
			defer cancel()
			p.note(pod.Name, p.push(ctx, pod, body))
		})
	}
	telling.Wait()
}

// note tells of a failure when it begins and when it ends.
func (p *Push) note(pod string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil && !p.failed[pod]:
		if p.failed == nil {
			p.failed = map[string]bool{}
		}
		p.failed[pod] = true
		p.Log.Info("list of lost rights not taken by a gateway, trying again", "pod", pod, "reason", err.Error())
	case err == nil && p.failed[pod]:
		delete(p.failed, pod)
		p.Log.Info("list of lost rights taken by a gateway again", "pod", pod)
	}
}

// errStatus is an answer other than "taken".
var errStatus = errors.New("the gateway does not take the list")

func (p *Push) push(ctx context.Context, pod corev1.Pod, body []byte) error {
	plane, err := p.secret(ctx, names.GarageObject(pod.Labels[names.PlaneLabel]), names.AdminTokenKey)
	if err != nil {
		return err
	}
	ca, err := p.secret(ctx, names.TLSSecret, names.CAKey)
	if err != nil {
		return err
	}
	gateway, err := p.Gateways.Client(ca)
	if err != nil {
		return err //nolint:wrapcheck // it is one of ours
	}
	url := p.Gateways.Address(pod.Status.PodIP).Admin + "/gateway/v1/revoked"
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("tell the gateway: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+plane)
	response, err := gateway.Do(request)
	if err != nil {
		return fmt.Errorf("tell the gateway: %w", err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10)) // for the connection to be used again
	_ = response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("%w: HTTP %d", errStatus, response.StatusCode)
	}
	return nil
}

var errNoSecret = errors.New("the Secret lacks a key")

func (p *Push) secret(ctx context.Context, name, key string) (string, error) {
	var secret corev1.Secret
	if err := p.Reader.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: name}, &secret); err != nil {
		return "", fmt.Errorf("read Secret %s: %w", name, err)
	}
	if len(secret.Data[key]) == 0 {
		return "", fmt.Errorf("%w: %s of %s", errNoSecret, key, name)
	}
	return string(secret.Data[key]), nil
}
