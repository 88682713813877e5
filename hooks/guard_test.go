package main

import (
	"context"
	"errors"
	"testing"

	"github.com/deckhouse/module-sdk/pkg"
	"github.com/deckhouse/module-sdk/pkg/registry"
	"github.com/stretchr/testify/require"
)

func TestPanicIsAnError(t *testing.T) {
	err := guarded(func(context.Context, *pkg.HookInput) error { panic("boom") })(t.Context(), nil)
	require.ErrorContains(t, err, "boom", "the platform takes a panic for success")
	failure := errors.New("failure")
	require.ErrorIs(t, guarded(func(context.Context, *pkg.HookInput) error { return failure })(t.Context(), nil), failure)
}

func TestHooksHaveTheirNames(t *testing.T) {
	found := map[string]bool{}
	for _, h := range registry.Registry().ModuleHooks() {
		require.NoError(t, h.Config.Validate())
		require.False(t, found[h.Config.Metadata.Name], "two hooks of the name %s", h.Config.Metadata.Name)
		found[h.Config.Metadata.Name] = true
	}
	require.Equal(t, map[string]bool{"certificates": true, "claims": true, "ingresscertificate": true, "keys": true, "plan": true, "roles": true, "secrets": true, "statefulsets": true}, found)
}

func TestBindingsKeepOnlyWhatIsUsed(t *testing.T) {
	for _, h := range registry.Registry().ModuleHooks() {
		for _, b := range h.Config.Kubernetes {
			require.NotEmpty(t, b.JqFilter, "%s keeps whole objects in memory and runs for every change", h.Config.Metadata.Name)
			require.True(t, b.NamespaceSelector == nil || b.NamespaceSelector.NameSelector != nil, "the SDK reads the names without asking")
		}
	}
}
