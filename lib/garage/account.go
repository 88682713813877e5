package garage

import (
	"context"

	"github.com/deckhouse/system-s3/lib/layout"
)

// Account is what the node that is asked tells of its own copies. Its name and its process are for the caller to add.
func (c *Client) Account(ctx context.Context) (layout.Account, error) {
	var account layout.Account
	health, err := c.GetClusterHealth(ctx)
	if err != nil {
		return account, err
	}
	history, err := c.GetClusterLayoutHistory(ctx)
	if err != nil {
		return account, err
	}
	statistics, err := c.GetNodeStatistics(ctx)
	if err != nil {
		return account, err
	}
	workers, err := c.ListWorkers(ctx)
	if err != nil {
		return account, err
	}
	account.AllConnected = health.Healthy() && health.Partitions > 0 && health.PartitionsAllOK == health.Partitions
	account.Quorate = health.Available() && health.Partitions > 0 && health.PartitionsQuorum == health.Partitions
	account.Draining = history.Draining()
	account.FailedBlocks = statistics.Blocks.ResyncErrors
	account.Blocks, account.Queue = statistics.Blocks.Referenced, statistics.Blocks.ResyncQueue
	account.Workers = workers
	for _, table := range statistics.Tables {
		account.Tables = append(account.Tables, layout.Table{
			Name: table.Name, Items: table.Items, MerkleQueue: table.MerkleQueue, InsertQueue: table.InsertQueue,
		})
	}
	return account, nil
}

// Ask carries a request of the gate to the node.
func (c *Client) Ask(ctx context.Context, request layout.Request) error {
	switch request {
	case layout.CompareAll:
		return c.LaunchRepair(ctx, RepairTables)
	case layout.FindBlocks:
		return c.LaunchRepair(ctx, RepairBlocks)
	case layout.RetryFailed:
		return c.RetryBlocks(ctx)
	case layout.NoRequest:
	}
	return nil
}
