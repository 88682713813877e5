package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	// GroupVersion is the group and version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: "storage.deckhouse.io", Version: "v1alpha1"}

	schemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}

	// AddToScheme registers the types of this package.
	AddToScheme = schemeBuilder.AddToScheme
)
