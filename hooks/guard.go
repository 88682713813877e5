package main

import (
	"context"
	"fmt"

	"github.com/deckhouse/module-sdk/pkg"
)

// handler is the body of a hook.
type handler = pkg.HookFunc[*pkg.HookInput]

// Orders of the hooks that run before the chart is applied.
const (
	orderCertificates = 10 + 10*iota
	orderPlan
	orderKeys
	orderSecrets
	orderClaims
	orderStatefulSets
	orderRoles
)

// guarded turns a panic into an error: the platform takes a hook that panics for one that succeeded.
func guarded(body handler) handler {
	return func(ctx context.Context, input *pkg.HookInput) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("hook panicked: %v", r)
			}
		}()
		return body(ctx, input)
	}
}
