// Package e2e tests the whole chain on a sandbox that is up: from ModuleConfig to bytes in a bucket, with real clients.
// TestStory starts from an empty store: what an earlier run or the demo has left is taken away first.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/tests/demo/stage"
)

const (
	namespace = "d8-e2e"

	// What may take how long on a busy machine of two cores. None of these is waited out when all is well.
	moduleLimit = 5 * time.Minute
	storeLimit  = 10 * time.Minute
	podLimit    = 5 * time.Minute
	shortLimit  = time.Minute
)

var masters = flag.Int("masters", 0, "how many masters the sandbox must have; 0 takes it as it is")

// site is the sandbox that the tests run on.
var site *stage.Stage

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if site, err = stage.Open(context.Background(), os.Stdout); err == nil {
		err = checkMasters(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// masterCount is the number of masters in the cluster.
func masterCount(ctx context.Context) (int, error) {
	nodes := &corev1.NodeList{}
	if err := site.Admin.List(ctx, nodes, client.HasLabels{"node-role.kubernetes.io/control-plane"}); err != nil {
		return 0, fmt.Errorf("list masters: %w", err)
	}
	return len(nodes.Items), nil
}

func checkMasters(ctx context.Context) error {
	found, err := masterCount(ctx)
	if err != nil {
		return err
	}
	if *masters != 0 && found != *masters {
		return fmt.Errorf("the sandbox has %d masters, the tests were told %d", found, *masters)
	}
	*masters = found
	return nil
}

// wantedReplicas follows from the number of masters (SPEC C5).
func wantedReplicas() int {
	if *masters > 1 {
		return 3
	}
	return 1
}
