package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/layout"
)

// Node is a Garage node to be asked for its own copies.
type Node struct {
	Name  string // the Pod's
	Run   string // names the Garage process, empty when that is not known
	Admin *garage.Client
}

// Accounts asks all nodes at once what they tell of their own copies. A node that does not answer in full is one that
// says nothing.
func Accounts(ctx context.Context, nodes []Node) []layout.Account {
	accounts := make([]layout.Account, len(nodes))
	var group sync.WaitGroup
	for i, node := range nodes {
		group.Go(func() {
			account, err := accountOf(ctx, node.Admin)
			if err != nil {
				account = layout.Account{Silence: err.Error()}
			}
			account.Name, account.Run = node.Name, node.Run
			accounts[i] = account
		})
	}
	group.Wait()
	return accounts
}

func accountOf(ctx context.Context, admin *garage.Client) (layout.Account, error) {
	var account layout.Account
	health, err := admin.GetClusterHealth(ctx)
	if err != nil {
		return account, err
	}
	history, err := admin.GetClusterLayoutHistory(ctx)
	if err != nil {
		return account, err
	}
	statistics, err := admin.GetNodeStatistics(ctx)
	if err != nil {
		return account, err
	}
	workers, err := admin.ListWorkers(ctx)
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

// Ask carries a request of the gate to every node. An error means that some node may not have it.
func Ask(ctx context.Context, nodes []Node, request layout.Request) error {
	failures := make([]error, len(nodes))
	var group sync.WaitGroup
	for i, node := range nodes {
		group.Go(func() {
			if err := askOne(ctx, node.Admin, request); err != nil {
				failures[i] = fmt.Errorf("%s: %w", node.Name, err)
			}
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

func askOne(ctx context.Context, admin *garage.Client, request layout.Request) error {
	switch request {
	case layout.CompareAll:
		return admin.LaunchRepair(ctx, garage.RepairTables)
	case layout.FindBlocks:
		return admin.LaunchRepair(ctx, garage.RepairBlocks)
	case layout.RetryFailed:
		return admin.RetryBlocks(ctx)
	case layout.NoRequest:
	}
	return nil
}
