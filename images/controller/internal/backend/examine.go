package backend

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/layout"
)

// examinedMost is how many failed blocks of a node are looked at: each takes two questions of about 18 ms of CPU. More
// than a few for each upload that was on its way are no leftovers of a crash.
const examinedMost = 200

// Examined is the accounts without those failed blocks that nothing acknowledged needs. A node whose failed blocks
// cannot be looked at says nothing.
func Examined(ctx context.Context, nodes []Node, accounts []layout.Account) []layout.Account {
	examined := slices.Clone(accounts)
	var group sync.WaitGroup
	for i := range examined {
		group.Go(func() {
			if err := examine(ctx, nodes[i].Admin, &examined[i]); err != nil {
				examined[i].Silence = fmt.Sprintf("its failed blocks cannot be looked at: %v", err)
			}
		})
	}
	group.Wait()
	return examined
}

func examine(ctx context.Context, node *garage.Client, account *layout.Account) error {
	blocks, err := node.ListFailedBlocks(ctx)
	if err != nil {
		return fmt.Errorf("list failed blocks: %w", err)
	}
	account.Examined, account.FailedBlocks, account.LackedBlocks = true, len(blocks), 0
	for n, block := range blocks {
		if block.References == 0 {
			continue
		}
		account.LackedBlocks++
		if n >= examinedMost {
			continue
		}
		references, err := node.GetBlockReferences(ctx, block.Hash)
		if err != nil {
			return fmt.Errorf("ask who needs block %s: %w", block.Hash, err)
		}
		if layout.Unneeded(references) {
			account.FailedBlocks--
			account.LackedBlocks--
		}
	}
	return nil
}
