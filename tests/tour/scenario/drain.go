package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/tour/ground"
)

const (
	drainLimit = 5 * time.Minute
	drained    = 30 * time.Second
)

func drain() Scenario {
	return Scenario{Name: "drain", About: "a node with a replica is drained and opened again", Play: drainNode}
}

func drainNode(ctx context.Context, g *ground.Ground) (err error) {
	nodes, err := g.Nodes(ctx)
	if err != nil {
		return err
	}
	node := nodes[0]
	pod, err := g.ReplicaOn(ctx, node)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Cordon(context.WithoutCancel(ctx), node, false)) }()
	if err := g.Cordon(ctx, node, true); err != nil {
		return err
	}
	err = g.Await(ctx, stage.Wish{What: pod.Name + " to be evicted", Limit: drainLimit, Look: func(ctx context.Context) (bool, string, error) {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		err := g.Admin.SubResource("eviction").Create(ctx, pod, eviction)
		if apierrors.IsTooManyRequests(err) {
			return false, err.Error(), nil
		}
		return err == nil, "", err
	}})
	if err != nil {
		return fmt.Errorf("drain %s: %w", node, err)
	}
	g.Sayf("%s is drained, %s has no place", node, pod.Name)
	g.Pause(ctx, drained/2, drained) //nolint:mnd // an administrator's work on the node
	return nil
}
