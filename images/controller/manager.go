package main

import (
	"fmt"
	"maps"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/images/controller/internal/bucket"
	"github.com/deckhouse/system-s3/images/controller/internal/endpoint"
	"github.com/deckhouse/system-s3/images/controller/internal/leave"
	"github.com/deckhouse/system-s3/images/controller/internal/metrics"
	"github.com/deckhouse/system-s3/images/controller/internal/migration"
	"github.com/deckhouse/system-s3/images/controller/internal/module"
	"github.com/deckhouse/system-s3/images/controller/internal/page"
	"github.com/deckhouse/system-s3/images/controller/internal/plane"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
	"github.com/deckhouse/system-s3/lib/names"
)

// stopTimeout is how long running exchanges and passes may take to end; the Pod has 30 seconds.
const stopTimeout = 20 * time.Second

func newManager(o options, config *rest.Config) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("fill the scheme: %w", err)
		}
	}
	scraped, err := metricsOptions(o, config)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		Cache:                   cacheOptions(),
		Metrics:                 scraped,
		HealthProbeBindAddress:  o.probes,
		GracefulShutdownTimeout: ptr.To(stopTimeout),
		LeaderElection:          true,
		LeaderElectionID:        names.LeaderLease, LeaderElectionNamespace: names.Namespace,
		LeaderElectionResourceLock: resourcelock.LeasesResourceLock,
		// The process ends right after, so nothing is written without the lease, and the next leader need not wait.
		LeaderElectionReleaseOnCancel: true,
		// Of all the cluster's volumes only those of our own claims are read, one at a time.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.PersistentVolume{}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("add the liveness probe: %w", err)
	}
	return mgr, nil
}

// cacheOptions keep out of memory what is none of our business: of all ConfigMaps and Secrets only our own.
func cacheOptions() cache.Options {
	own := map[string]cache.Config{names.Namespace: {}}
	marked := labels.SelectorFromSet(labels.Set{names.ModuleLabel: names.Module})
	// Nobody here reads who wrote which field, and with thousands of objects that is half of the memory.
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{
			names.Namespace:     {},
			cache.AllNamespaces: {LabelSelector: marked},
		}},
		&corev1.Secret{}:                {Namespaces: own},
		&corev1.Pod{}:                   {Namespaces: own, Label: labels.SelectorFromSet(labels.Set{names.AppLabel: names.GarageApp})},
		&appsv1.StatefulSet{}:           {Namespaces: own, Label: labels.SelectorFromSet(labels.Set{names.AppLabel: names.GarageApp})},
		&corev1.Service{}:               {Namespaces: own},
		&discoveryv1.EndpointSlice{}:    {Namespaces: own, Label: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: names.S3Service})},
		module.Object():                 {Field: fields.OneTermEqualSelector("metadata.name", names.Module)},
		&corev1.PersistentVolumeClaim{}: {Namespaces: own},
		&corev1.Node{}:                  {Transform: plane.OnlyPlace},
	}}
	maps.Copy(options.ByObject, page.Cached())
	return options
}

// setupControllers adds what only the leader runs. The conditions that it publishes are told as metrics, too.
func setupControllers(mgr manager.Manager, conditions *metrics.Conditions) error {
	board := backend.NewBoard()
	conditions.Next = module.Conditions{Client: mgr.GetClient(), Events: mgr.GetEventRecorder(names.Module), Now: time.Now}
	gateways := &backend.Gateways{}
	planes := plane.New(mgr.GetClient(), gateways, conditions, board)
	typed, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make the client for logs: %w", err)
	}
	planes.Logs = plane.PodLogs{Client: typed}
	if err := planes.Setup(mgr); err != nil {
		return err
	}
	if err := bucket.Setup(mgr, board); err != nil {
		return err
	}
	conductor := &migration.Conductor{Client: mgr.GetClient(), Fresh: mgr.GetAPIReader(), Gateways: gateways, Board: board}
	if err := mgr.Add(conductor); err != nil {
		return fmt.Errorf("add what moves the store: %w", err)
	}
	if err := mgr.Add(&leave.ComeBack{Reader: mgr.GetAPIReader(), Writer: mgr.GetClient()}); err != nil {
		return fmt.Errorf("add what puts back what leaving took: %w", err)
	}
	return (&endpoint.Reconciler{Client: mgr.GetClient()}).Setup(mgr)
}

// ready is the readiness probe of what can be asked without an argument.
func ready(check func() error) healthz.Checker {
	return func(*http.Request) error { return check() }
}
