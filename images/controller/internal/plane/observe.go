package plane

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

const (
	// askTimeout bounds one question to a node: a node that hangs must not hold up the pass.
	askTimeout = 5 * time.Second
	// changeTimeout bounds one change, which waits for a quorum of nodes.
	changeTimeout = 30 * time.Second

	// patience is how long the scheduler may find no node before it is told: while a volume is being made, or a label has
	// only just been set, it finds none for a moment.
	patience = 10 * time.Second

	nodeKeyLength   = 64 // bytes: an ed25519 seed and its public key, which is the node's id
	publicKeyOffset = 32
)

// secrets is the plane's Secret and the CA, decoded.
type secrets struct {
	adminToken string
	seed       []byte
	nodeIDs    map[int]string // by ordinal
	ca         string
}

// access is how a pass reaches the plane.
type access struct {
	secrets

	http *http.Client
	// asked is the replica that answers, nil when none does; all changes of the pass go through it.
	asked *replica
	admin *garage.Client
}

func (r *Reconciler) readSecrets(ctx context.Context, p plan.Plane) (secrets, error) {
	var own, serving corev1.Secret
	key := client.ObjectKey{Namespace: names.Namespace, Name: names.GarageObject(p.ID)}
	if err := r.secret(ctx, key, &own); err != nil {
		return secrets{}, err
	}
	key.Name = names.TLSSecret
	if err := r.secret(ctx, key, &serving); err != nil {
		return secrets{}, err
	}
	return parseSecrets(own, string(serving.Data[names.CAKey]), p)
}

func (r *Reconciler) secret(ctx context.Context, key client.ObjectKey, into *corev1.Secret) error {
	err := r.Client.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the Secret %s is not there; Deckhouse makes it with the release of the module", key.Name)
	}
	if err != nil {
		return fmt.Errorf("read Secret %s: %w", key.Name, err)
	}
	return nil
}

// parseSecrets takes from the plane's Secret what the controller needs. Its errors never quote the Secret.
func parseSecrets(own corev1.Secret, ca string, p plan.Plane) (secrets, error) {
	s := secrets{adminToken: string(own.Data[names.AdminTokenKey]), ca: ca, nodeIDs: map[int]string{}}
	if s.adminToken == "" {
		return secrets{}, fmt.Errorf("the Secret %s has no %s", own.Name, names.AdminTokenKey)
	}
	seed, err := hex.DecodeString(string(own.Data[names.SeedKey]))
	if err != nil || len(seed) == 0 {
		return secrets{}, fmt.Errorf("the Secret %s has no hexadecimal %s", own.Name, names.SeedKey)
	}
	s.seed = seed
	for ordinal := p.OrdinalsStart; ordinal < p.OrdinalsStart+p.Replicas; ordinal++ {
		key := own.Data[names.NodeKeyKey(ordinal)]
		if len(key) != nodeKeyLength {
			return secrets{}, fmt.Errorf("the Secret %s has no %s of %d bytes", own.Name, names.NodeKeyKey(ordinal), nodeKeyLength)
		}
		s.nodeIDs[ordinal] = hex.EncodeToString(key[publicKeyOffset:])
	}
	return s, nil
}

// observe gathers the facts of a plane and the way to it.
func (r *Reconciler) observe(ctx context.Context, p plan.Plane, previous plan.PlaneState) (facts, access, error) {
	f := facts{Plane: p, Previous: previous}
	secrets, err := r.readSecrets(ctx, p)
	if err != nil {
		return f, access{}, err
	}
	a := access{secrets: secrets}
	if a.http, err = r.Gateways.Client(secrets.ca); err != nil {
		return f, access{}, err
	}
	all, err := r.replicas(ctx, p, secrets)
	if err != nil {
		return f, access{}, err
	}
	r.measure(ctx, all, a)
	r.recall(all)
	if f.Nodes, err = r.nodes(ctx); err != nil {
		return f, access{}, err
	}
	f = f.divide(all)
	f.Garage, err = r.look(ctx, f.askable(), &a)
	return f, a, err
}

func (r *Reconciler) replicas(ctx context.Context, p plan.Plane, s secrets) ([]replica, error) {
	replicas := make([]replica, 0, p.Replicas)
	for ordinal := p.OrdinalsStart; ordinal < p.OrdinalsStart+p.Replicas; ordinal++ {
		name := names.GaragePod(p.ID, ordinal)
		var pod corev1.Pod
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: name}, &pod)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read Pod %s: %w", name, err)
		}
		each := replica{Ordinal: ordinal, Pod: name, ID: s.nodeIDs[ordinal]}
		if err == nil {
			each = describeRun(describe(each, pod), pod)
			each.Damage = r.damage(ctx, pod)
		}
		if each, err = r.describeClaim(ctx, p.ID, each); err != nil {
			return nil, err
		}
		replicas = append(replicas, each)
	}
	return replicas, nil
}

func describe(r replica, pod corev1.Pod) replica {
	r.Exists = pod.DeletionTimestamp == nil
	r.Node, r.IP = pod.Spec.NodeName, pod.Status.PodIP
	for _, condition := range pod.Status.Conditions {
		switch {
		case condition.Type == corev1.PodReady:
			r.Ready = condition.Status == corev1.ConditionTrue
		case condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			condition.Reason == corev1.PodReasonUnschedulable && time.Since(condition.LastTransitionTime.Time) > patience:
			r.Unschedulable = condition.Message
		}
	}
	return r
}

// measure asks all gateways for their volumes at once. One that does not answer leaves the space unknown.
func (r *Reconciler) measure(ctx context.Context, replicas []replica, a access) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var group sync.WaitGroup
	for i := range replicas {
		if replicas[i].IP == "" {
			continue
		}
		group.Go(func() {
			url := r.Gateways.Address(replicas[i].IP).Admin
			if space, err := backend.Volume(ctx, a.http, url, a.adminToken); err == nil {
				replicas[i].Space, replicas[i].Content = space, space.Content
			}
		})
	}
	group.Wait()
}

// look asks the lowest ordinal that answers for its view of the cluster; nil when none answers. The error is one that
// does not pass by itself.
func (r *Reconciler) look(ctx context.Context, replicas []replica, a *access) (*view, error) {
	for i := range replicas {
		if replicas[i].IP == "" || !replicas[i].Exists {
			continue
		}
		admin := garage.New(r.Gateways.Address(replicas[i].IP).Admin, a.adminToken, a.http)
		seen, err := ask(ctx, admin)
		switch {
		case err == nil:
			a.asked, a.admin = &replicas[i], admin
			return seen, nil
		case isRefusal(err):
			return nil, fmt.Errorf("%s refuses the admin token of its own Secret: %w", replicas[i].Pod, err)
		default:
			log.FromContext(ctx).V(1).Info("Garage does not answer", "pod", replicas[i].Pod, "error", err.Error())
		}
	}
	return nil, nil //nolint:nilnil // no view and no error: nobody answers, and that is a fact like others
}

func isRefusal(err error) bool {
	var refused *garage.Error
	return errors.As(err, &refused) &&
		(refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden)
}

func ask(ctx context.Context, admin *garage.Client) (*view, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	status, err := admin.GetClusterStatus(ctx)
	if err != nil {
		return nil, err
	}
	health, err := admin.GetClusterHealth(ctx)
	if err != nil {
		return nil, err
	}
	layout, err := admin.GetClusterLayout(ctx)
	if err != nil {
		return nil, err
	}
	return &view{Up: status.Up(), Health: health, Layout: layout}, nil
}
