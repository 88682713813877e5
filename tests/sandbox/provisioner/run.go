package provisioner

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

// Run provisions, grows and deletes volumes below the state directory until the
// context ends.
func Run(ctx context.Context, client kubernetes.Interface, dir statedir.Dir) error {
	if err := remount(ctx, dir); err != nil {
		return err
	}

	go controller.NewProvisionController(
		ctx, client, Name, Provisioner{dir: dir, client: client},
		controller.LeaderElection(false),
	).Run(ctx)

	if err := newGrowth(client).run(ctx); err != nil {
		return fmt.Errorf("grow volumes: %w", err)
	}

	return nil
}
