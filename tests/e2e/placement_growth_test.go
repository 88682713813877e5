package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/tour/ground"
)

// claims are the sizes that the volumes have got, by claim, and those that they ask for when these differ.
func claims(ctx context.Context) (map[string]string, error) {
	list := &corev1.PersistentVolumeClaimList{}
	if err := site.Admin.List(ctx, list, client.InNamespace(names.Namespace)); err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	found := map[string]string{}
	for _, claim := range list.Items {
		asked, has := claim.Spec.Resources.Requests.Storage().String(), claim.Status.Capacity.Storage().String()
		found[claim.Name] = has
		if asked != has {
			found[claim.Name] = has + " of " + asked
		}
	}
	return found, nil
}

// awaitSize waits until every volume and the StatefulSet have the size, and no claim was ever smaller than before.
func awaitSize(t *testing.T, size string) {
	t.Helper()
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "volumes of " + size, Limit: storeLimit, Look: func(ctx context.Context) (bool, string, error) {
		found, err := claims(ctx)
		for _, has := range found {
			if has != size {
				return false, fmt.Sprint(found), err
			}
		}
		set := statefulSetSize(ctx)
		return err == nil && len(found) > 0 && set == size, fmt.Sprint(found, " StatefulSet ", set), err
	}}))
}

func statefulSetSize(ctx context.Context) string {
	sets, err := garageSets(ctx)
	if err != nil || len(sets) != 1 {
		return fmt.Sprint("none, ", err)
	}
	return sets[0].Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String()
}

// writer writes small objects, one after the other, without repeating any, until it is stopped.
type writer struct {
	written atomic.Int64
	failed  chan error
	stop    context.CancelFunc
}

func write(ctx context.Context, c *s3.Client, bucket string) *writer {
	ctx, stop := context.WithCancel(ctx)
	w := &writer{stop: stop, failed: make(chan error, 1)}
	go func() {
		var errs []error
		for ctx.Err() == nil {
			n := w.written.Load()
			err := put(ctx, c, bucket, fmt.Sprintf("growing/%d", n), []byte(fmt.Sprint(n)))
			if ctx.Err() != nil {
				break
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("object %d: %w", n, err))
			}
			w.written.Add(1)
		}
		w.failed <- errors.Join(errs...)
	}()
	return w
}

// patient asks for a key until it gets one: what is on trial is the store's answers to writes.
func patient(keys aws.CredentialsProvider) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		for {
			key, err := keys.Retrieve(ctx)
			if err == nil || ctx.Err() != nil {
				return key, err
			}
			pause(ctx, 500*time.Millisecond)
		}
	})
}

// pause lets time pass for the writer.
func pause(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (w *writer) end() error {
	w.stop()
	return <-w.failed
}

// growsByQuota: nothing is restarted, no write fails, and the StatefulSet is another one with the new size (D2).
func (s *placing) growsByQuota(t *testing.T) {
	awaitSize(t, "10Gi")
	awaitText(t, capacityReady, "True", plan.ReasonEnough, "Each replica has a volume of 10Gi.")
	before, set := pods(t), statefulSet(t)
	allow(t, "grower", names.ReadSubresource, names.WriteSubresource)
	door := s.door(t)
	keys := aws.NewCredentialsCache(patient(door.of("grower", mainBucket, "")))
	w := write(t.Context(), door.s3(keys), bucketName(t, mainBucket))
	require.NoError(t, site.Bucket(t.Context(), mainKey(), "10Gi"))
	awaitSize(t, "15Gi")
	awaitText(t, capacityReady, "True", plan.ReasonEnough, "Each replica has a volume of 15Gi.")
	written := w.written.Load()
	require.NoError(t, site.Await(t.Context(), stage.Wish{What: "writes to go on", Limit: moduleLimit, Look: func(context.Context) (bool, string, error) {
		return w.written.Load() > written+10, "", nil
	}}))
	require.NoError(t, w.end(), "no write fails while volumes grow")
	t.Logf("%d objects were written meanwhile", w.written.Load())
	require.NotEqual(t, set.UID, statefulSet(t).UID, "the claim template cannot be changed, so the StatefulSet is another one")
	require.Equal(t, before, pods(t), "its Pods are the same, and nothing in them was started anew")
	require.NoError(t, awaitHealth(t.Context()))
}

// fill takes space on the volume of a replica until so many percent of it are free.
func fill(t *testing.T, ordinal int, percent uint64) (empty func()) {
	t.Helper()
	path, err := ground.VolumePath(t.Context(), site, names.GarageClaim(plane, ordinal))
	require.NoError(t, err)
	require.NoError(t, ground.Fill(t.Context(), path, percent))
	return func() { require.NoError(t, ground.Empty(context.Background(), path)) }
}

// growsByFilling: one replica is filled, all grow by one step, and what happened can be read in the events (D3).
func (s *placing) growsByFilling(t *testing.T) {
	before := pods(t)
	empty := fill(t, 1, 4)
	defer empty()
	awaitSize(t, "20Gi")
	awaitText(t, capacityReady, "True", plan.ReasonEnough, "Each replica has a volume of 20Gi.")
	require.Equal(t, before, pods(t), "nothing was started anew")
	require.NoError(t, awaitHealth(t.Context()))
	told, err := happened(t.Context())
	require.NoError(t, err)
	t.Log(strings.Join(told, "\n"))
	for _, reason := range []string{plan.ReasonWaitingForFirstBucket, plan.ReasonLayoutFailed, plan.ReasonReady, plan.ReasonPlacementBlocked, plan.ReasonPlaced, plan.ReasonGrowing, plan.ReasonExhausted} {
		require.True(t, slices.ContainsFunc(told, func(line string) bool { return strings.HasPrefix(line, reason+" ") }), "an event tells of %s", reason)
	}
}

// happened is what the events of the Module tell.
func happened(ctx context.Context) ([]string, error) {
	list := &eventsv1.EventList{}
	if err := site.Admin.List(ctx, list, client.InNamespace("default")); err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var told []string
	for _, event := range list.Items {
		if event.Regarding.Kind == "Module" && event.Regarding.Name == names.Module {
			told = append(told, event.Reason+" "+event.EventTime.Format(time.TimeOnly)+" "+event.Note)
		}
	}
	return told, nil
}
