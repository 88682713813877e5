package migration

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

// side is one of the two planes with the way to it.
type side struct {
	plane plan.Plane
	// removed tells that its StatefulSet does not exist.
	removed bool
	token   string
	seed    []byte
	http    *http.Client
	pods    []pod // by ordinal; those that are to be there
}

type pod struct {
	name  string
	run   string // names the Pod and its gateway's process; empty without a Pod
	ip    string
	ready bool
}

var errNoSecret = errors.New("its Secret is not there or lacks something")

// look finds the way to a plane. Pods are read past the cache: one that has just been made writes to no journal.
func (c *Conductor) look(ctx context.Context, p plan.Plane) (side, error) {
	s := side{plane: p}
	var set appsv1.StatefulSet
	err := c.Fresh.Get(ctx, key(names.GarageObject(p.ID)), &set)
	if client.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("read StatefulSet %s: %w", names.GarageObject(p.ID), err)
	}
	s.removed = apierrors.IsNotFound(err)
	if err := c.readSecrets(ctx, &s); err != nil {
		return s, err
	}
	var found corev1.PodList
	err = c.Fresh.List(ctx, &found, client.InNamespace(names.Namespace), client.MatchingLabels{names.AppLabel: names.GarageApp, names.PlaneLabel: p.ID})
	if err != nil {
		return s, fmt.Errorf("list Pods of plane %s: %w", p.ID, err)
	}
	for ordinal := p.OrdinalsStart; ordinal < p.OrdinalsStart+p.Replicas; ordinal++ {
		s.pods = append(s.pods, describe(names.GaragePod(p.ID, ordinal), found.Items))
	}
	for _, each := range found.Items { // one that is not planned may be asked by clients all the same
		if !slices.ContainsFunc(s.pods, func(p pod) bool { return p.name == each.Name }) {
			s.pods = append(s.pods, describe(each.Name, found.Items))
		}
	}
	return s, nil
}

func key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: names.Namespace, Name: name}
}

func describe(name string, found []corev1.Pod) pod {
	described := pod{name: name}
	i := slices.IndexFunc(found, func(p corev1.Pod) bool { return p.Name == name })
	if i < 0 {
		return described
	}
	described.run, described.ip = string(found[i].UID), found[i].Status.PodIP
	for _, status := range slices.Concat(found[i].Status.ContainerStatuses, found[i].Status.InitContainerStatuses) {
		if status.Name == names.GatewayContainer {
			described.run += "/" + strconv.Itoa(int(status.RestartCount))
		}
	}
	for _, condition := range found[i].Status.Conditions {
		if condition.Type == corev1.PodReady {
			described.ready = condition.Status == corev1.ConditionTrue
		}
	}
	return described
}

// readSecrets never quotes a Secret. A plane that is being made has none yet, one that is being removed none at the end:
// nobody of it can be asked then.
func (c *Conductor) readSecrets(ctx context.Context, s *side) error {
	var own, serving corev1.Secret
	if err := c.Client.Get(ctx, key(names.GarageObject(s.plane.ID)), &own); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read Secret %s: %w", names.GarageObject(s.plane.ID), err)
	}
	if err := c.Client.Get(ctx, key(names.TLSSecret), &serving); err != nil {
		return fmt.Errorf("read Secret %s: %w", names.TLSSecret, err)
	}
	seed, err := hex.DecodeString(string(own.Data[names.SeedKey]))
	s.token, s.seed = string(own.Data[names.AdminTokenKey]), seed
	if err != nil || len(seed) == 0 || s.token == "" {
		return fmt.Errorf("plane %s: %w", s.plane.ID, errNoSecret)
	}
	if s.http, err = c.Gateways.Client(string(serving.Data[names.CAKey])); err != nil {
		return fmt.Errorf("make a client for plane %s: %w", s.plane.ID, err)
	}
	return nil
}

func (c *Conductor) door(s side, p pod) backend.Door {
	return backend.Door{Name: p.name, URL: c.Gateways.Address(p.ip).Admin, Token: s.token, HTTP: s.http}
}

// doors are the gateways that can be asked.
func (c *Conductor) doors(s side) []backend.Door {
	var doors []backend.Door
	for _, p := range s.pods {
		if p.ip != "" && s.http != nil {
			doors = append(doors, c.door(s, p))
		}
	}
	return doors
}

func (c *Conductor) admin(s side, p pod) *garage.Client {
	return garage.New(c.Gateways.Address(p.ip).Admin, s.token, s.http)
}

// first is a replica that serves.
func (s side) first() (pod, bool) {
	i := slices.IndexFunc(s.pods, func(p pod) bool { return p.ip != "" && p.ready })
	if i < 0 || s.http == nil {
		return pod{}, false
	}
	return s.pods[i], true
}
