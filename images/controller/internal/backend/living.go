package backend

import (
	"context"
	"sync"

	"github.com/deckhouse/system-s3/lib/layout"
)

// LivingAccounts is Accounts of nodes that are to prove that they hold everything without another one. Besides the rest
// they tell whom they see, by the names that ids gives to Garage's ids, and which blocks they lack.
func LivingAccounts(ctx context.Context, nodes []Node, ids map[string]string) []layout.Account {
	accounts := Accounts(ctx, nodes)
	var group sync.WaitGroup
	for i := range accounts {
		if accounts[i].Silence != "" {
			continue
		}
		group.Go(func() {
			if err := addCompany(ctx, nodes[i], ids, &accounts[i]); err != nil {
				accounts[i] = layout.Account{Name: nodes[i].Name, Run: nodes[i].Run, Silence: err.Error()}
			}
		})
	}
	group.Wait()
	return accounts
}

func addCompany(ctx context.Context, node Node, ids map[string]string, account *layout.Account) error {
	status, err := node.Admin.GetClusterStatus(ctx)
	if err != nil {
		return err
	}
	account.Sees = map[string]bool{}
	for id := range status.Up() {
		account.Sees[ids[id]] = true
	}
	account.LackedBlocks, err = node.Admin.CountLackedBlocks(ctx)
	return err
}
