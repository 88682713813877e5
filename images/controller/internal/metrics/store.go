// Package metrics is what the controller tells of the store, of the buckets, of the exchanges of keys and of itself, and
// to whom. It reads what the other parts have written down, and decides nothing.
package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/metrics"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/lib/plan"
)

// readTimeout bounds the reading of the cache for a scrape.
const readTimeout = 5 * time.Second

// Store tells the plan, what was observed of it, and all SystemBuckets. Only the leader's cache holds all of it, and only
// one replica must tell it.
type Store struct {
	Reader  client.Reader
	Elected <-chan struct{} // closed once this replica leads
	Log     logr.Logger
}

var (
	planeInfo      = describe(metrics.PlaneInfo)
	planeReplicas  = describe(metrics.PlaneReplicas)
	planeAvailable = describe(metrics.PlaneAvailable)
	planeHealthy   = describe(metrics.PlaneHealthy)
	planeOutdated  = describe(metrics.PlaneOutdated)
	planeMoving    = describe(metrics.PlaneMoving)
	replicaUp      = describe(metrics.ReplicaUp)
	replicaFill    = describe(metrics.ReplicaFill)
	replicaReady   = describe(metrics.ReplicaReady)
	replicaVolume  = describe(metrics.ReplicaVolume)
	replicaFree    = describe(metrics.ReplicaVolumeFree)

	migrationInfo          = describe(metrics.MigrationInfo)
	migrationObjects       = describe(metrics.MigrationObjects)
	migrationCopiedObjects = describe(metrics.MigrationCopiedObjects)
	migrationBytes         = describe(metrics.MigrationBytes)
	migrationCopiedBytes   = describe(metrics.MigrationCopiedBytes)
	migrationWaiting       = describe(metrics.MigrationWaiting)
)

// Describe tells the metrics.
func (s Store) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		planeInfo, planeReplicas, planeAvailable, planeHealthy, planeOutdated, planeMoving, replicaUp, replicaFill, replicaReady, replicaVolume, replicaFree,
		migrationInfo, migrationObjects, migrationCopiedObjects, migrationBytes, migrationCopiedBytes, migrationWaiting,
		bucketInfo, bucketCondition, bucketUsed, bucketQuota, bucketObjects, bucketQuotaObjects,
	} {
		to <- desc
	}
}

// Collect reads the cache. What cannot be read is not told: it is not nothing.
func (s Store) Collect(to chan<- prometheus.Metric) {
	select {
	case <-s.Elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	for what, collect := range map[string]func(context.Context, chan<- prometheus.Metric) error{
		"plan": s.plan, "state": s.state, "templates": s.templates, "SystemBuckets": s.buckets,
	} {
		if err := collect(ctx, to); err != nil {
			s.Log.Error(err, "metrics are incomplete", "what", what)
		}
	}
}

// document reads a key of one of our ConfigMaps; without the ConfigMap it says nothing.
func (s Store) document(ctx context.Context, name, key string, into any) error {
	var object corev1.ConfigMap
	if err := s.Reader.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: name}, &object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := json.Unmarshal([]byte(object.Data[key]), into); err != nil {
		return fmt.Errorf("decode ConfigMap %s: %w", name, err)
	}
	return nil
}

func (s Store) plan(ctx context.Context, to chan<- prometheus.Metric) error {
	var wanted plan.Plan
	if err := s.document(ctx, names.PlanConfigMap, names.PlanKey, &wanted); err != nil {
		return err
	}
	for _, p := range wanted.Planes {
		to <- gauge(planeInfo, 1, p.ID, string(p.Role), p.StorageClass, string(p.Tier))
		to <- gauge(planeReplicas, float64(p.Replicas), p.ID)
	}
	return nil
}

const percent = 100

func (s Store) state(ctx context.Context, to chan<- prometheus.Metric) error {
	var seen plan.State
	if err := s.document(ctx, names.StateConfigMap, names.StateKey, &seen); err != nil {
		return err
	}
	if m := seen.Migration; m != nil {
		migration(*m, to)
	}
	for _, p := range seen.Planes {
		to <- gauge(planeAvailable, truth(p.Available), p.ID)
		to <- gauge(planeHealthy, truth(p.Healthy), p.ID)
		to <- gauge(planeMoving, truth(p.Moving != ""), p.ID)
		for _, r := range p.Replicas {
			pod := names.GaragePod(p.ID, r.Ordinal)
			to <- gauge(replicaUp, truth(r.Up), p.ID, pod, r.Node)
			to <- gauge(replicaReady, truth(r.Ready), p.ID, pod)
			if r.Fill != nil {
				to <- gauge(replicaFill, float64(r.Fill.Percent)/percent, p.ID, pod)
			}
			if r.VolumeBytes > 0 {
				to <- gauge(replicaVolume, float64(r.VolumeBytes), p.ID, pod)
				to <- gauge(replicaFree, float64(r.VolumeFree), p.ID, pod)
			}
		}
	}
	return nil
}

func migration(m plan.MigrationState, to chan<- prometheus.Metric) {
	to <- gauge(migrationInfo, 1, m.Source, m.Target, string(m.Phase))
	to <- gauge(migrationWaiting, truth(m.Awaited != ""), m.Source, m.Target)
	to <- gauge(migrationObjects, float64(m.Objects))
	to <- gauge(migrationCopiedObjects, float64(m.Copied))
	to <- gauge(migrationBytes, float64(m.Bytes))
	to <- gauge(migrationCopiedBytes, float64(m.CopiedBytes))
}

// templates counts the replicas of each plane that run another template than the StatefulSet's newest.
func (s Store) templates(ctx context.Context, to chan<- prometheus.Metric) error {
	garage := client.MatchingLabels{names.AppLabel: names.GarageApp}
	var sets appsv1.StatefulSetList
	if err := s.Reader.List(ctx, &sets, client.InNamespace(names.Namespace), garage); err != nil {
		return fmt.Errorf("list StatefulSets: %w", err)
	}
	var pods corev1.PodList
	if err := s.Reader.List(ctx, &pods, client.InNamespace(names.Namespace), garage); err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	for _, set := range sets.Items {
		plane, outdated := set.Labels[names.PlaneLabel], 0
		for _, pod := range pods.Items {
			revision := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
			if pod.Labels[names.PlaneLabel] == plane && revision != "" && revision != set.Status.UpdateRevision {
				outdated++
			}
		}
		to <- gauge(planeOutdated, float64(outdated), plane)
	}
	return nil
}
