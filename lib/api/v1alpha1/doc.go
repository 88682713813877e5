// Package v1alpha1 holds the API types of storage.deckhouse.io/v1alpha1.
//
// +kubebuilder:object:generate=true
// +groupName=storage.deckhouse.io
package v1alpha1

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.20.0 object paths=.
//go:generate sh -c "go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.20.0 crd paths=. output:crd:stdout > ../../../crds/systembucket.yaml"
