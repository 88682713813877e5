// Package pagetest makes clusters for tests of the status page: objects as a cluster would have them, in a real cache
// of controller-runtime that is filled without an apiserver.
package pagetest

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/deckhouse/system-s3/images/controller/internal/module"
	"github.com/deckhouse/system-s3/lib/api/v1alpha1"
)

// Cache is a cache with the objects. It ends with the context.
func Cache(ctx context.Context, objects []client.Object, options map[client.Object]cache.ByObject) (client.Reader, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("fill the scheme: %w", err)
		}
	}
	own := meta.NewDefaultRESTMapper(nil)
	own.Add(module.GroupVersionKind, meta.RESTScopeRoot)
	kinds := map[schema.GroupVersionKind][]client.Object{}
	for _, each := range objects {
		kind, err := apiutil.GVKForObject(each, scheme)
		if err != nil {
			return nil, fmt.Errorf("tell the kind of %s: %w", each.GetName(), err)
		}
		kinds[kind] = append(kinds[kind], each)
	}
	filled, err := cache.New(&rest.Config{}, cache.Options{
		HTTPClient: http.DefaultClient, Scheme: scheme, ByObject: options,
		Mapper: meta.MultiRESTMapper{own, testrestmapper.TestOnlyStaticRESTMapper(scheme)},
		NewInformer: func(_ toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			kind, _ := apiutil.GVKForObject(example, scheme) // the cache has asked itself
			return toolscache.NewSharedIndexInformer(still(kinds[kind]), example, resync, indexers)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	go func() { _ = filled.Start(ctx) }() // it ends with the context
	if !filled.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("fill the cache: %w", context.Cause(ctx))
	}
	return filled, nil
}

// still is an apiserver where nothing happens.
type still []client.Object

// List is everything.
func (s still) List(metav1.ListOptions) (runtime.Object, error) {
	list := &corev1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, each := range s {
		list.Items = append(list.Items, runtime.RawExtension{Object: each})
	}
	return list, nil
}

// Watch never tells anything.
func (still) Watch(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil }

// IsWatchListSemanticsUnSupported makes informers list: nothing is ever told by a watch.
func (still) IsWatchListSemanticsUnSupported() bool { return true }
