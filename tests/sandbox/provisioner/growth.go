package provisioner

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const resync = 30 * time.Second

// growth makes volumes as large as their claims ask for.
type growth struct {
	client kubernetes.Interface
	queue  workqueue.TypedRateLimitingInterface[types.NamespacedName]
}

func newGrowth(client kubernetes.Interface) *growth {
	return &growth{
		client: client,
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
	}
}

// run works until the context ends.
func (g *growth) run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(g.client, resync)
	enqueue := func(object any) {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && wantsMore(claim) {
			g.queue.Add(types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
		}
	}

	_, err := factory.Core().V1().PersistentVolumeClaims().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
	})
	if err != nil {
		return fmt.Errorf("watch the claims: %w", err)
	}

	factory.Start(ctx.Done())
	context.AfterFunc(ctx, g.queue.ShutDown)

	for g.next(ctx) {
		continue
	}

	return nil
}

func (g *growth) next(ctx context.Context) bool {
	key, stop := g.queue.Get()
	if stop {
		return false
	}
	defer g.queue.Done(key)

	if err := g.grow(ctx, key); err != nil {
		slog.Error("growing a volume failed, trying again", "claim", key.String(), "error", err)
		g.queue.AddRateLimited(key)

		return true
	}

	g.queue.Forget(key)

	return true
}

// wantsMore tells whether a bound claim asks for more than it has.
func wantsMore(claim *corev1.PersistentVolumeClaim) bool {
	want, have := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]

	return claim.Status.Phase == corev1.ClaimBound && want.Cmp(have) > 0
}

func (g *growth) grow(ctx context.Context, key types.NamespacedName) error {
	claim, err := g.client.CoreV1().PersistentVolumeClaims(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("get the claim: %w", err)
	}

	pv, err := g.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get the volume: %w", err)
	}

	if !wantsMore(claim) || pv.Annotations["pv.kubernetes.io/provisioned-by"] != Name {
		return nil
	}

	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if err := volumeOf(pv).Grow(ctx, size.Value()); err != nil {
		return fmt.Errorf("grow the file system: %w", err)
	}

	slog.Info("volume grown", "claim", key.String(), "size", size.String())

	return g.publish(ctx, claim, size)
}

// publish writes the new size to the volume and the claim, the volume first, as
// the resizer of a CSI driver does.
func (g *growth) publish(ctx context.Context, claim *corev1.PersistentVolumeClaim, size resource.Quantity) error {
	capacity := map[string]any{"capacity": map[string]string{"storage": size.String()}}

	spec, err := json.Marshal(map[string]any{"spec": capacity})
	if err != nil {
		return fmt.Errorf("encode the volume's capacity: %w", err)
	}

	_, err = g.client.CoreV1().PersistentVolumes().Patch(
		ctx, claim.Spec.VolumeName, types.MergePatchType, spec, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("write the volume's capacity: %w", err)
	}

	// The conditions that a resize leaves on a claim are all there is: none remains.
	capacity["conditions"] = nil

	status, err := json.Marshal(map[string]any{"status": capacity})
	if err != nil {
		return fmt.Errorf("encode the claim's capacity: %w", err)
	}

	_, err = g.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(
		ctx, claim.Name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("write the claim's capacity: %w", err)
	}

	return nil
}
