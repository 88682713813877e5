// Package leave takes the disabled module out of the cluster without losing anything, and puts back what it took when
// the module returns. It stops Garage, lets SystemBuckets go, takes the platform's label off what stays and withdraws
// the module's conditions. It deletes no data and no object but Pods of Garage without an owner and its own Deployment.
//
// It is run by Kubernetes, not by the platform's hooks: a purge runs none of those, a restart forgets one that fails, and
// one that fails holds up the whole platform. So every step looks at what is there, may be killed anywhere and begun
// again, and asks first whether the module was enabled in between.
package leave

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
)

const (
	// Deployment that runs the leaver, in PlatformNamespace: what deletes the module's namespace must not take it away.
	Deployment = "system-s3-leave"
	// PlatformNamespace is the namespace of the release.
	PlatformNamespace = "d8-system"
)

// Progress is how far a pass came.
type Progress int

// How far a pass came.
const (
	// Asleep: the module is enabled and nothing may be done.
	Asleep Progress = iota
	// Waiting: something that was told to stop has not stopped yet.
	Waiting
	// Gone: nothing is left to do.
	Gone
)

// Leaver does the steps of leaving.
type Leaver struct {
	// Client reads from the API itself: a cache could show a module that is enabled again as disabled.
	Client client.Client
	Now    func() time.Time
}

// step of leaving; false means that it has to be waited for.
type step struct {
	what string
	do   func(context.Context) (bool, error)
}

// Pass does all steps that can be done now. The namespace is the last of the labelled: as long as it has the label an
// administrator cannot delete it from under us.
func (l *Leaver) Pass(ctx context.Context) (Progress, error) {
	for _, s := range []step{
		{"stop Garage", l.stopGarage},
		{"wait for the Pods to end", l.podsEnded},
		{"let the SystemBuckets go", l.releaseBuckets},
		{"take the label off the objects", l.unlabelObjects},
		{"take the label off the namespace", l.unlabelNamespace},
		{"withdraw the conditions", l.withdrawConditions},
		{"remove the leaver", l.removeItself},
	} {
		enabled, err := l.enabled(ctx)
		if err != nil {
			return Waiting, err
		}
		if enabled {
			return Asleep, nil
		}
		done, err := s.do(ctx)
		if err != nil {
			return Waiting, fmt.Errorf("%s: %w", s.what, err)
		}
		if !done {
			return Waiting, nil
		}
	}
	return Gone, nil
}

// enabled tells whether the module is enabled: the plan is in the cluster exactly as long.
func (l *Leaver) enabled(ctx context.Context) (bool, error) {
	var marker corev1.ConfigMap
	err := l.Client.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.PlanConfigMap}, &marker)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the plan: %w", err)
	}
	return marker.DeletionTimestamp.IsZero(), nil
}

// unlessEnabled does the change only if the module is still disabled right before it; false when it is enabled. A change
// of many objects takes a while.
func (l *Leaver) unlessEnabled(ctx context.Context, change func(context.Context) error) (bool, error) {
	enabled, err := l.enabled(ctx)
	if err != nil || enabled {
		return false, err
	}
	return true, change(ctx)
}
