package garage

import (
	"context"
	"fmt"

	"github.com/deckhouse/system-s3/lib/layout"
)

type layoutAnswer struct {
	Version           int          `json:"version"`
	Roles             []layoutRole `json:"roles"`
	StagedRoleChanges []layoutRole `json:"stagedRoleChanges"`
	StagedParameters  *struct{}    `json:"stagedParameters"`
}

// layoutRole is a role or a change of one; Garage tells the two forms apart by the presence of remove.
type layoutRole struct {
	ID       string   `json:"id"`
	Remove   bool     `json:"remove"`
	Zone     string   `json:"zone"`
	Capacity *int64   `json:"capacity"`
	Tags     []string `json:"tags"`
}

func (r layoutRole) role() layout.Role {
	role := layout.Role{ID: r.ID, Zone: r.Zone}
	if r.Capacity != nil {
		role.Capacity = *r.Capacity
	}
	return role
}

// GetClusterLayout reads the layout in force and what is staged. Draining is not part of this call's answer: see
// GetClusterLayoutHistory.
func (c *Client) GetClusterLayout(ctx context.Context) (layout.Layout, error) {
	var answer layoutAnswer
	if err := c.read(ctx, "GetClusterLayout", nil, &answer); err != nil {
		return layout.Layout{}, err
	}
	return answer.layout(), nil
}

func (a layoutAnswer) layout() layout.Layout {
	l := layout.Layout{Version: a.Version, StagedParameters: a.StagedParameters != nil}
	for _, role := range a.Roles {
		l.Roles = append(l.Roles, role.role())
	}
	for _, change := range a.StagedRoleChanges {
		l.Staged = append(l.Staged, layout.Change{Role: change.role(), Remove: change.Remove})
	}
	return l
}

// History is which versions of the layout are live.
type History struct {
	CurrentVersion int             `json:"currentVersion"`
	MinAck         int             `json:"minAck"`
	Versions       []LayoutVersion `json:"versions"`
}

// LayoutVersion is one version of the layout.
type LayoutVersion struct {
	Version      int    `json:"version"`
	Status       string `json:"status"` // Current, Draining or Historical
	StorageNodes int    `json:"storageNodes"`
}

// Draining tells whether an older version than the current one is still live.
func (h History) Draining() bool {
	for _, version := range h.Versions {
		if version.Status == "Draining" {
			return true
		}
	}
	return false
}

// GetClusterLayoutHistory reads the versions of the layout.
func (c *Client) GetClusterLayoutHistory(ctx context.Context) (History, error) {
	var answer History
	return answer, c.read(ctx, "GetClusterLayoutHistory", nil, &answer)
}

// UpdateClusterLayout stages changes of roles.
func (c *Client) UpdateClusterLayout(ctx context.Context, changes []layout.Change) error {
	type removal struct {
		ID     string `json:"id"`
		Remove bool   `json:"remove"`
	}
	type assignment struct {
		ID       string   `json:"id"`
		Zone     string   `json:"zone"`
		Capacity *int64   `json:"capacity"` // null is a node that stores nothing
		Tags     []string `json:"tags"`
	}
	roles := make([]any, 0, len(changes))
	for _, change := range changes {
		if change.Remove {
			roles = append(roles, removal{ID: change.ID, Remove: true})
			continue
		}
		role := assignment{ID: change.ID, Zone: change.Zone, Tags: []string{}}
		if change.Capacity > 0 {
			role.Capacity = &change.Capacity
		}
		roles = append(roles, role)
	}
	return c.change(ctx, request{call: "UpdateClusterLayout", body: map[string]any{"roles": roles}}, nil)
}

// LayoutError is Garage's own words on why the staged layout cannot be computed.
type LayoutError struct{ Message string }

// Error tells Garage's words.
func (e *LayoutError) Error() string { return e.Message }

// PreviewClusterLayoutChanges computes the staged layout without applying it. The error is a *LayoutError when that is
// impossible.
func (c *Client) PreviewClusterLayoutChanges(ctx context.Context) error {
	var answer struct {
		Error string `json:"error"`
	}
	if err := c.change(ctx, request{call: "PreviewClusterLayoutChanges"}, &answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return &LayoutError{Message: answer.Error}
	}
	return nil
}

// ApplyClusterLayout makes what is staged the layout's given version, which must be the present one plus one. Garage
// answers a conflict as an internal error: after any error the layout has to be read again.
func (c *Client) ApplyClusterLayout(ctx context.Context, version int) error {
	if version < 1 {
		return fmt.Errorf("ApplyClusterLayout: %d is no version", version)
	}
	body := map[string]int{"version": version}
	return c.change(ctx, request{call: "ApplyClusterLayout", body: body}, nil)
}

// RevertClusterLayout throws away what is staged.
func (c *Client) RevertClusterLayout(ctx context.Context) error {
	return c.change(ctx, request{call: "RevertClusterLayout"}, nil)
}
