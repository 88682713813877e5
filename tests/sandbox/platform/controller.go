package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const (
	systemNamespace = "d8-system"
	// operatorConfig is the ConfigMap that addon-operator takes its configuration from.
	operatorConfig = "addon-operator"
	// pause is how long the controller rests after a pass, so that a burst of events is one pass.
	pause = 200 * time.Millisecond
	// refresh is how often it looks without an event: addon-operator tells nobody when it is done.
	refresh = 2 * time.Second
)

// controller is the stand-in for deckhouse-controller and the global hooks. Every pass
// looks at the whole cluster and writes what is missing, so any pass may be lost.
type controller struct {
	client     kubernetes.Interface
	objects    dynamic.Interface
	definition Definition
	settings   Settings
	facts      ClusterFacts
	pretended  []string // modules that are said to be enabled
	operator   debugSocket
	ready      func() error // called once, after the first pass that came through
	log        *slog.Logger
}

// run works until the context ends.
func (c *controller) run(ctx context.Context) error {
	wake := make(chan struct{}, 1)

	if err := c.watch(ctx, wake); err != nil {
		return err
	}

	ticker := time.NewTicker(refresh)
	defer ticker.Stop()

	for {
		err := c.pass(ctx)
		if err == nil {
			err = c.ready()
		}

		if err != nil && ctx.Err() == nil {
			c.log.Error("pass failed, trying again", "error", err)
		}

		if !waited(ctx, pause) {
			return nil
		}

		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-ticker.C:
		}
	}
}

// waited waits for the duration; false means that the context ended first.
func waited(ctx context.Context, duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// watch wakes the controller on any change of what it reads.
func (c *controller) watch(ctx context.Context, wake chan<- struct{}) error {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(c.objects, 0)
	notify := func() {
		select {
		case wake <- struct{}{}:
		default: // a wake-up is already waiting
		}
	}

	for _, resource := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "nodes"},
		{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
		crdResource, moduleConfigResource, moduleResource,
	} {
		_, err := factory.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { notify() },
			UpdateFunc: func(any, any) { notify() },
			DeleteFunc: func(any) { notify() },
		})
		if err != nil {
			return fmt.Errorf("watch %s: %w", resource.Resource, err)
		}
	}

	factory.Start(ctx.Done())

	return nil
}

// pass observes, decides and acts once.
func (c *controller) pass(ctx context.Context) error {
	seen, err := c.observe(ctx)
	if err != nil {
		return err
	}

	data, err := Translation{
		Definition: c.definition, Config: seen.config, Global: Globals(seen.world),
	}.ConfigMapData()
	if err != nil {
		return err
	}

	if err := c.writeOperatorConfig(ctx, data); err != nil {
		return err
	}

	return errors.Join(
		c.answer(ctx, seen.config),
		c.takeConfirmation(ctx, seen.config),
		c.reportModule(ctx, seen.config),
	)
}

func (c *controller) writeOperatorConfig(ctx context.Context, data map[string]string) error {
	configs := c.client.CoreV1().ConfigMaps(systemNamespace)

	current, err := configs.Get(ctx, operatorConfig, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configs.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: operatorConfig, Labels: map[string]string{"heritage": "deckhouse"}},
			Data:       data,
		}, metav1.CreateOptions{})

		return wrap("create addon-operator's configuration", err)
	}

	if err != nil {
		return fmt.Errorf("read addon-operator's configuration: %w", err)
	}

	if maps.Equal(current.Data, data) {
		return nil
	}

	c.log.Info("configuration of addon-operator changes", "enabled", data[c.definition.ValuesKey()+"Enabled"])

	current.Data = data
	_, err = configs.Update(ctx, current, metav1.UpdateOptions{})

	return wrap("write addon-operator's configuration", err)
}

// answer tells in the ModuleConfig's status which version of the settings is in use.
func (c *controller) answer(ctx context.Context, config *ModuleConfig) error {
	version := strconv.Itoa(c.settings.Version())
	if config == nil || config.Status.Version == version {
		return nil
	}

	patch := map[string]any{"status": ModuleConfigStatus{Version: version}}

	return c.patchConfig(ctx, patch, "status")
}

// takeConfirmation removes the confirmation of a disabling that addon-operator has
// been told about: the next one is asked about anew.
func (c *controller) takeConfirmation(ctx context.Context, config *ModuleConfig) error {
	if !config.confirmed() || config.enabled(c.definition.EnabledByBundle()) {
		return nil
	}

	c.log.Info("disabling was confirmed, taking the confirmation off")

	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{allowDisabling: nil}}}

	return c.patchConfig(ctx, patch)
}

func (c *controller) patchConfig(ctx context.Context, patch any, subresources ...string) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("write patch of ModuleConfig: %w", err)
	}

	_, err = c.objects.Resource(moduleConfigResource).Patch(
		ctx, c.definition.Name, types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	if apierrors.IsNotFound(err) {
		return nil
	}

	return wrap("patch ModuleConfig", err)
}

// wrap says what was being done when the error happened, if there is one.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}

	return fmt.Errorf("%s: %w", doing, err)
}
