package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/sandbox/artifact"
	"github.com/deckhouse/system-s3/tests/sandbox/command"
)

const (
	namespace = "d8-demo"
	bucket    = "data"
	size      = "1Gi"

	moduleLimit = 5 * time.Minute
	storeLimit  = 10 * time.Minute
	podLimit    = 5 * time.Minute
	countLimit  = 3 * time.Minute
)

var errTooEarly = errors.New("there is a data plane although nobody has asked for a bucket yet")

// chapter is one step of the story: what an administrator is told, and what happens.
type chapter struct {
	title string
	play  func(context.Context, *stage.Stage) error
}

// play tells the story from the first chapter to the last.
func play(ctx context.Context, s *stage.Stage) error {
	var pods cast
	chapters := []chapter{
		{"Enabling the module: ModuleConfig system-s3 with enabled: true", enable},
		{"Container images for the consumers: the real AWS CLI, and a small Go program", pods.prepare},
		{"A namespace of the platform, " + namespace + ", with the label heritage: deckhouse", func(ctx context.Context, s *stage.Stage) error {
			return s.Namespace(ctx, namespace)
		}},
		{"A bucket: SystemBucket " + bucket + " of " + size + " in " + namespace, order},
		{"Rights: a Role and a RoleBinding for two of the three ServiceAccounts", pods.rights},
		{"What the module gives a consumer: a ConfigMap, no Secret", showConnection},
		{"Consumer 1: a Pod with the AWS CLI, a projected token, and only the ConfigMap as environment", pods.runCLI},
		{"Consumer 2: a Pod with a Go program on the SDK's default configuration", pods.runProgram},
		{"Consumer 3: a Pod without a RoleBinding; it must be refused", pods.runStranger},
		{"All buckets: kubectl get sb -A", list},
	}
	started := time.Now()
	for i, c := range chapters {
		s.Sayf("\n[%d/%d] %s", i+1, len(chapters), c.title)
		if err := c.play(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", c.title, err)
		}
	}
	farewell(s, time.Since(started))
	return nil
}

// enable switches the module on and shows that it costs nothing until somebody wants a bucket.
func enable(ctx context.Context, s *stage.Stage) error {
	if err := s.Configure(ctx, true, nil); err != nil {
		return err
	}
	// Anything but the first is from an earlier run of the demo: the store stays once it is there.
	err := s.AwaitCondition(ctx, moduleLimit, "StorageReady", "WaitingForFirstBucket", "NoStorageClass", "Ready", "Starting", "Degraded")
	if err != nil {
		return err
	}
	condition, err := s.Condition(ctx, "StorageReady")
	if err != nil {
		return err
	}
	if condition.Reason != "WaitingForFirstBucket" {
		s.Sayf("    the store is there from an earlier run")
		return nil
	}
	sets := &appsv1.StatefulSetList{}
	if err := s.Admin.List(ctx, sets, client.InNamespace(names.Namespace)); err != nil {
		return fmt.Errorf("list StatefulSets: %w", err)
	}
	if len(sets.Items) > 0 {
		return errTooEarly
	}
	s.Sayf("    no Garage runs yet: it is created with the first SystemBucket")
	return nil
}

func order(ctx context.Context, s *stage.Stage) error {
	key := client.ObjectKey{Namespace: namespace, Name: bucket}
	if err := s.Bucket(ctx, key, size); err != nil {
		return err
	}
	if err := s.AwaitBucket(ctx, key, storeLimit); err != nil {
		return err
	}
	return showStore(ctx, s)
}

// showStore tells where the replicas run.
func showStore(ctx context.Context, s *stage.Stage) error {
	pods := &corev1.PodList{}
	err := s.Admin.List(ctx, pods, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.GarageApp})
	if err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	for i := range pods.Items {
		s.Sayf("    replica %s on %s", pods.Items[i].Name, pods.Items[i].Spec.NodeName)
	}
	return nil
}

func showConnection(ctx context.Context, s *stage.Stage) error {
	connection := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: namespace, Name: names.ConnectionConfigMap(bucket)}
	if err := s.Admin.Get(ctx, key, connection); err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	lines := make([]string, 0, len(connection.Data))
	for name, value := range connection.Data {
		if strings.Contains(value, "\n") {
			value = "(a certificate)"
		}
		lines = append(lines, name+"="+value)
	}
	slices.Sort(lines)
	s.Sayf("    ConfigMap %s:\n      %s", key.Name, strings.Join(lines, "\n      "))
	return nil
}

// list shows the table once it counts what the second consumer has left in the bucket.
func list(ctx context.Context, s *stage.Stage) error {
	key := client.ObjectKey{Namespace: namespace, Name: bucket}
	err := s.Await(ctx, stage.Wish{What: "the use of the bucket to be counted", Limit: countLimit, Look: func(ctx context.Context) (bool, string, error) {
		sb, _, err := s.ReadBucket(ctx, key)
		if err != nil || ptr.Deref(sb.Status.Objects, 0) == 0 {
			return false, "use is counted once a minute", err
		}
		return true, "", nil
	}})
	if err != nil {
		return err
	}
	kubernetes, err := s.Builds.Path(artifact.Kubernetes())
	if err != nil {
		return fmt.Errorf("find kubectl: %w", err)
	}
	table, err := command.Output(ctx, kubernetes, "kubectl", "--kubeconfig="+s.Kubeconfig, "get", "sb", "-A")
	if err != nil {
		return err
	}
	s.Sayf("%s", strings.TrimSpace(table))
	return nil
}

func farewell(s *stage.Stage, took time.Duration) {
	s.Sayf(`
The demo is over after %s, and all of it worked. The cluster stays up. To look around:

  export KUBECONFIG=%s
  bin/sandbox kubectl get sb -A
  bin/sandbox kubectl get module system-s3 -o yaml
  bin/sandbox kubectl -n %s get pods -o wide
  bin/sandbox kubectl -n %s get pods,configmaps
  bin/sandbox kubectl -n %s logs %s

To take it away: make down`,
		took.Round(time.Second), s.Kubeconfig, names.Namespace, namespace, namespace, cliName)
}
