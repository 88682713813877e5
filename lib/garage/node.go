package garage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/deckhouse/system-s3/lib/layout"
)

// Repair is what a node can be asked to check and mend.
type Repair string

// The repairs that are used.
const (
	RepairTables Repair = "tables" // compare all tables with the other nodes
	RepairBlocks Repair = "blocks" // look through all blocks and queue the ones that are missing
)

// own asks the node itself, which is the only one that knows its own work. The calls below answer 200 even when every
// node failed.
type own struct {
	Success map[string]json.RawMessage `json:"success"`
	Error   map[string]string          `json:"error"`
}

var self = url.Values{"node": {"self"}} //nolint:gochecknoglobals // a constant in all but syntax

// take decodes the one answer.
func (o own) take(answer any) error {
	for _, problem := range o.Error {
		return errors.New(problem)
	}
	if len(o.Success) != 1 {
		return fmt.Errorf("%d answers of one node", len(o.Success))
	}
	for _, raw := range o.Success {
		if answer == nil {
			return nil
		}
		if err := json.Unmarshal(raw, answer); err != nil {
			return fmt.Errorf("decode the node's answer: %w", err)
		}
	}
	return nil
}

func (c *Client) askSelf(ctx context.Context, r request, answer any) error {
	var o own
	r.query = self
	if err := c.change(ctx, r, &o); err != nil {
		return err
	}
	if err := o.take(answer); err != nil {
		return fmt.Errorf("%s: %w", r.call, err)
	}
	return nil
}

// askOwn is a question without a body.
func (c *Client) askOwn(ctx context.Context, call string, answer any) error {
	var o own
	if err := c.read(ctx, call, self, &o); err != nil {
		return err
	}
	if err := o.take(answer); err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	return nil
}

// LaunchRepair makes the node that is asked begin a repair; it does not wait for its end.
func (c *Client) LaunchRepair(ctx context.Context, repair Repair) error {
	return c.askSelf(ctx, request{call: "LaunchRepairOperation", body: map[string]string{"repairType": string(repair)}}, nil)
}

// RetryBlocks makes the node that is asked try all its failed blocks again at once.
func (c *Client) RetryBlocks(ctx context.Context) error {
	return c.askSelf(ctx, request{call: "RetryBlockResync", body: map[string]bool{"all": true}}, nil)
}

// ListWorkers reads the background tasks of the node that is asked.
func (c *Client) ListWorkers(ctx context.Context) ([]layout.Worker, error) {
	var answer []worker
	body := map[string]bool{"busyOnly": false, "errorOnly": false}
	if err := c.askSelf(ctx, request{call: "ListWorkers", body: body}, &answer); err != nil {
		return nil, err
	}
	workers := make([]layout.Worker, 0, len(answer))
	for _, w := range answer {
		workers = append(workers, w.worker())
	}
	return workers, nil
}

type worker struct {
	ID          int             `json:"id"`
	Name        string          `json:"name"`
	State       json.RawMessage `json:"state"` // a word, or an object {"throttled": ...}
	Errors      int             `json:"errors"`
	QueueLength *int            `json:"queueLength"`
	LastError   *struct {
		SecsAgo int `json:"secsAgo"`
	} `json:"lastError"`
	Freeform []string `json:"freeform"`
}

// Garage 2.5.0's words; there are no other signs.
const (
	disabledWorker = "This worker is currently disabled"
	pausedWorker   = "Scrub paused"
)

func (w worker) worker() layout.Worker {
	told := layout.Worker{ID: w.ID, Name: w.Name, Errors: w.Errors, Disabled: slices.Contains(w.Freeform, disabledWorker)}
	told.Paused = slices.ContainsFunc(w.Freeform, func(line string) bool { return strings.HasPrefix(line, pausedWorker) })
	if err := json.Unmarshal(w.State, &told.State); err != nil {
		told.State = "throttled"
	}
	if w.QueueLength != nil {
		told.Queue = *w.QueueLength
	}
	if w.LastError != nil {
		told.LastError = time.Duration(w.LastError.SecsAgo) * time.Second
	}
	return told
}

// NodeStatistics is what a node counts of its own copies.
type NodeStatistics struct {
	Tables []TableStatistics `json:"tableStats"`
	Blocks *BlockStatistics  `json:"blockManagerStats"` // nil in an answer that is not understood
}

// TableStatistics is the size of a table and of its queues, in entries.
type TableStatistics struct {
	Name        string `json:"tableName"`
	Items       int    `json:"items"`
	MerkleQueue int    `json:"merkleQueueLen"`
	InsertQueue int    `json:"insertQueueLen"`
}

// BlockStatistics counts blocks.
type BlockStatistics struct {
	Referenced   int `json:"rcEntries"`
	ResyncQueue  int `json:"resyncQueueLen"`
	ResyncErrors int `json:"resyncErrors"`
}

// GetNodeStatistics reads the counters of the node that is asked.
func (c *Client) GetNodeStatistics(ctx context.Context) (NodeStatistics, error) {
	const call = "GetNodeStatistics"
	var answer NodeStatistics
	if err := c.askOwn(ctx, call, &answer); err != nil {
		return answer, err
	}
	if answer.Blocks == nil || len(answer.Tables) == 0 {
		return answer, fmt.Errorf("%s: the answer has no counters", call)
	}
	return answer, nil
}
