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
			account, err := node.Admin.Account(ctx)
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

// Ask carries a request of the gate to every node. An error means that some node may not have it.
func Ask(ctx context.Context, nodes []Node, request layout.Request) error {
	failures := make([]error, len(nodes))
	var group sync.WaitGroup
	for i, node := range nodes {
		group.Go(func() {
			if err := node.Admin.Ask(ctx, request); err != nil {
				failures[i] = fmt.Errorf("%s: %w", node.Name, err)
			}
		})
	}
	group.Wait()
	return errors.Join(failures...)
}
