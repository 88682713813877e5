package garage

import (
	"context"
	"fmt"
	"strconv"

	"github.com/deckhouse/system-s3/lib/layout"
)

// Names of the variables by which a node's copying of blocks is tuned; Garage keeps them over restarts.
const (
	variableWorkers     = "resync-worker-count"
	variableTranquility = "resync-tranquility"
)

// GetSpeed reads how fast the node that is asked copies blocks.
func (c *Client) GetSpeed(ctx context.Context) (layout.Speed, error) {
	const call = "GetWorkerVariable"
	var (
		answer map[string]string
		speed  layout.Speed
	)
	if err := c.askSelf(ctx, request{call: call, body: map[string]any{"variable": nil}}, &answer); err != nil {
		return speed, err
	}
	for name, into := range map[string]*int{variableWorkers: &speed.Workers, variableTranquility: &speed.Tranquility} {
		value, err := strconv.Atoi(answer[name])
		if err != nil {
			return layout.Speed{}, fmt.Errorf("%s: %s is %q", call, name, answer[name])
		}
		*into = value
	}
	return speed, nil
}

// SetSpeed changes how fast the node that is asked copies blocks.
func (c *Client) SetSpeed(ctx context.Context, speed layout.Speed) error {
	for name, value := range map[string]int{variableWorkers: speed.Workers, variableTranquility: speed.Tranquility} {
		body := map[string]string{"variable": name, "value": strconv.Itoa(value)}
		if err := c.askSelf(ctx, request{call: "SetWorkerVariable", body: body}, nil); err != nil {
			return err
		}
	}
	return nil
}

// PauseScrub stops the check of all blocks that the node that is asked runs; it goes on by itself a day later.
func (c *Client) PauseScrub(ctx context.Context) error { return c.scrub(ctx, "pause") }

// ResumeScrub lets a check that was paused go on.
func (c *Client) ResumeScrub(ctx context.Context) error { return c.scrub(ctx, "resume") }

func (c *Client) scrub(ctx context.Context, command string) error {
	body := map[string]any{"repairType": map[string]string{"scrub": command}}
	return c.askSelf(ctx, request{call: "LaunchRepairOperation", body: body}, nil)
}
