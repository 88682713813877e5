package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
)

const (
	// What issue 5 asks for, at 5 000 SystemBuckets.
	wantedPass   = 30 * time.Second
	wantedMemory = 128 << 20

	atOnce   = 16 // creations
	changed  = 100
	restTime = 2 * time.Minute // two sweeps
)

var (
	errNoProcess = errors.New("the controller's process was not found on this machine")
	errNoMetric  = errors.New("the metrics of Garage have no count of requests for its admin API")
)

// many makes many SystemBuckets and measures what they cost the controller: calls at rest, memory, a pass after a restart.
func many(ctx context.Context, g *ground, o options) error {
	begun := time.Now()
	if err := makeAll(ctx, g, o.buckets); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(os.Stdout, "%d SystemBuckets made and ready in %.0f s\n", o.buckets, time.Since(begun).Seconds())
	if err := rest(ctx, g); err != nil {
		return err
	}
	pass, err := restart(ctx, g, o.buckets)
	if err != nil {
		return err
	}
	memory, err := controllerMemory(ctx, g)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(os.Stdout, "a pass after a restart: %.1f s from the new process to the last of %d changed SystemBuckets; resident memory then %d MiB\n",
		pass.Seconds(), min(changed, o.buckets), memory>>20)
	if !o.keep {
		if err := deleteAll(ctx, g, "many-", o.buckets); err != nil {
			return err
		}
	}
	if pass > wantedPass || memory > wantedMemory {
		return errTooSlow
	}
	return nil
}

func makeAll(ctx context.Context, g *ground, count int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for n := range count {
		group.Go(func() error {
			name := fmt.Sprintf("many-%04d", n)
			if err := create(ctx, g, name); err != nil {
				return err
			}
			return awaitReady(ctx, g, name)
		})
	}
	return group.Wait() //nolint:wrapcheck // the functions above wrap it
}

// rest counts Garage's admin calls while nothing happens.
func rest(ctx context.Context, g *ground) error {
	before, err := adminCalls(ctx, g)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("let the store rest: %w", ctx.Err())
	case <-time.After(restTime):
	}
	after, err := adminCalls(ctx, g)
	if err != nil {
		return err
	}
	for call, count := range after {
		if more := count - before[call]; more > 0 {
			_, _ = fmt.Fprintf(os.Stdout, "at rest: %.1f %s a minute\n", float64(more)/restTime.Minutes(), call)
		}
	}
	return nil
}

// restart stops the controller, changes SystemBuckets while it is away, and measures from its start until all say so.
func restart(ctx context.Context, g *ground, count int) (time.Duration, error) {
	step := max(count/changed, 1)
	var chosen []string
	for n := 0; n < count && len(chosen) < changed; n += step {
		chosen = append(chosen, fmt.Sprintf("many-%04d", n))
	}
	err := g.Deckhouse.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.ControllerApp})
	if err != nil {
		return 0, fmt.Errorf("restart the controller: %w", err)
	}
	begun := time.Now()
	for _, name := range chosen {
		var sb v1alpha1.SystemBucket
		key := client.ObjectKey{Namespace: namespace, Name: name}
		if err := g.Admin.Get(ctx, key, &sb); err != nil {
			return 0, fmt.Errorf("read SystemBucket %s: %w", name, err)
		}
		before := sb.DeepCopy()
		sb.Spec.Size.Add(resource.MustParse("1Ki"))
		if err := g.Admin.Patch(ctx, &sb, client.MergeFrom(before)); err != nil {
			return 0, fmt.Errorf("change SystemBucket %s: %w", name, err)
		}
	}
	for _, name := range chosen {
		if err := awaitReady(ctx, g, name); err != nil {
			return 0, err
		}
	}
	return time.Since(begun), nil
}

// controllerMemory is what the controller's process has resident, in bytes: nodes of the sandbox share the machine.
func controllerMemory(ctx context.Context, g *ground) (int64, error) {
	var pods corev1.PodList
	err := g.Admin.List(ctx, &pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.ControllerApp})
	if err != nil {
		return 0, fmt.Errorf("list the controller's Pods: %w", err)
	}
	largest := int64(0)
	processes, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for i := range pods.Items {
		for _, process := range processes {
			cgroup, err := os.ReadFile(filepath.Join(process, "cgroup")) //nolint:gosec // a process of this machine
			program, linkErr := os.Readlink(filepath.Join(process, "exe"))
			if err != nil || linkErr != nil || program != "/controller" || !strings.Contains(string(cgroup), string(pods.Items[i].UID)) {
				continue
			}
			largest = max(largest, resident(process))
		}
	}
	if largest == 0 {
		return 0, errNoProcess
	}
	return largest, nil
}

func resident(process string) int64 {
	status, err := os.ReadFile(filepath.Join(process, "status")) //nolint:gosec // below /proc
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if text, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(text, "kB")), 10, 64)
			return kib << 10 //nolint:mnd // KiB
		}
	}
	return 0
}

// adminCalls are the requests that Garage's admin API has had, by name.
func adminCalls(ctx context.Context, g *ground) (map[string]int64, error) {
	var pod corev1.Pod
	if err := g.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.GaragePod("a", 0)}, &pod); err != nil {
		return nil, fmt.Errorf("read the Pod of Garage: %w", err)
	}
	var secret corev1.Secret
	if err := g.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.GarageObject("a")}, &secret); err != nil {
		return nil, fmt.Errorf("read the Secret of Garage: %w", err)
	}
	url, closeTunnel, err := tunnel(g, pod.Name)
	if err != nil {
		return nil, err
	}
	defer closeTunnel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask for metrics: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+string(secret.Data[names.MetricsTokenKey]))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask for metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	calls := map[string]int64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		call, count, found := parseMetric(lines.Text())
		if found {
			calls[call] += count
		}
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("%w (HTTP %d)", errNoMetric, response.StatusCode)
	}
	return calls, nil
}

// tunnel leads to Garage's admin API, which listens inside the Pod only: Kubernetes forwards a port to it.
func tunnel(g *ground, pod string) (url string, closeTunnel func(), err error) {
	transport, upgrader, err := spdy.RoundTripperFor(g.Config)
	if err != nil {
		return "", nil, fmt.Errorf("reach %s: %w", pod, err)
	}
	target := g.Typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(names.Namespace).Name(pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.New(dialer, []string{":" + strconv.Itoa(names.GarageAdminPort)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return "", nil, fmt.Errorf("reach %s: %w", pod, err)
	}
	failed := make(chan error, 1)
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case err := <-failed:
		return "", nil, fmt.Errorf("reach %s: %w", pod, err)
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(stop)
		return "", nil, fmt.Errorf("reach %s: %w", pod, err)
	}
	return "http://127.0.0.1:" + strconv.Itoa(int(ports[0].Local)), func() { close(stop) }, nil
}

// parseMetric reads a line such as `api_admin_request_counter{api_endpoint="ListBucketsInfo",...} 7`.
func parseMetric(line string) (call string, count int64, found bool) {
	rest, found := strings.CutPrefix(line, "api_admin_request_counter{")
	if !found {
		return "", 0, false
	}
	_, rest, _ = strings.Cut(rest, `api_endpoint="`)
	call, rest, _ = strings.Cut(rest, `"`)
	_, text, _ := strings.Cut(rest, "} ")
	count, err := strconv.ParseInt(text, 10, 64)
	return call, count, err == nil
}
