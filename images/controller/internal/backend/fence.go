package backend

import (
	"context"
	"net/http"
)

// Fence ends writes at every gateway, for good: they wait until there is somewhere to go. With a URL every request is
// forwarded there. Each gateway has made it durable when it answers.
func Fence(ctx context.Context, doors []Door, to string) error {
	return all(doors, func(_ int, d Door) error {
		return d.ask(ctx, http.MethodPut, "fence", map[string]string{"to": to}, nil)
	})
}

// Fenced tells whether the gateway is fenced, and where it forwards requests to; empty when nowhere yet.
func Fenced(ctx context.Context, door Door) (fenced bool, to string, err error) {
	var told struct {
		Fenced bool   `json:"fenced"`
		To     string `json:"to"`
	}
	err = door.ask(ctx, http.MethodGet, "fence", nil, &told)
	return told.Fenced, told.To, err
}
