// Package platform is the sandbox's stand-in for Deckhouse: everything that a
// Deckhouse installation would give the module and that this cluster does not have.
//
// Real parts, used as they are: addon-operator (with shell-operator and nelm), the
// module's own bundle (chart, hooks binary, schemas, CRDs) and its images.
//
// Stand-ins, written here, each as small as its contract allows:
//
//   - the API of deckhouse.io/v1alpha1 Module and ModuleConfig;
//   - the admission webhook of ModuleConfig: settings checked against the module's
//     own schema, disabling only with confirmation; and that of Module, which nobody
//     but Deckhouse may create or delete;
//   - deckhouse-controller: ModuleConfig becomes addon-operator's configuration, the
//     Module reports what came of it, the confirmation is taken off after use;
//   - the global discovery hooks: values computed from nodes, classes and CRDs;
//   - the registry and module delivery: the bundle is assembled from the checkout.
//
// Not here at all: ModuleSource, ModuleRelease, update policies, editions, bundles,
// conversions of settings between schema versions, licence checks.
//
// A bug of the module that shows only with a stand-in is a bug of the stand-in; the
// real platform's behaviour is what the stand-ins are held to.
package platform
