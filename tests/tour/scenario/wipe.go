package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/tour/ground"
)

const wipeLimit = 5 * time.Minute

func wipe() Scenario {
	return Scenario{Name: "wipe", About: "the volume of one replica is deleted and rebuilt from the others", Play: wipeOne}
}

// wipeOne gives up the volume of a replica, as an administrator does whose disk is broken: only after the proof that the
// others hold everything.
func wipeOne(ctx context.Context, g *ground.Ground) error {
	if err := g.Prove(ctx); err != nil {
		return err
	}
	pod, err := g.Any(ctx, names.GarageApp)
	if err != nil {
		return err
	}
	claim, key := &corev1.PersistentVolumeClaim{}, client.ObjectKey{Namespace: names.Namespace, Name: "data-" + pod.Name}
	if err := g.Admin.Get(ctx, key, claim); err != nil {
		return fmt.Errorf("read claim %s: %w", key.Name, err)
	}
	if err := errors.Join(g.Deckhouse.Delete(ctx, claim.DeepCopy()), g.Deckhouse.Delete(ctx, pod)); err != nil {
		return fmt.Errorf("delete %s with its volume: %w", pod.Name, err)
	}
	g.Sayf("deleted %s with its volume %s", pod.Name, claim.Spec.VolumeName)
	return g.Await(ctx, stage.Wish{What: "a new volume of " + pod.Name, Limit: wipeLimit, Look: func(ctx context.Context) (bool, string, error) {
		other := &corev1.PersistentVolumeClaim{}
		err := g.Admin.Get(ctx, key, other)
		return err == nil && other.UID != claim.UID && other.Status.Phase == corev1.ClaimBound, "", client.IgnoreNotFound(err)
	}})
}
