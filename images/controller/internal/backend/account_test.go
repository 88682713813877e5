package backend_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/layout"
)

// TestTheGateKnowsAWipedReplica: a replica loses its disk and comes back as itself. Garage calls the cluster healthy at
// once; the gate must not open before every block is back on that disk.
func TestTheGateKnowsAWipedReplica(t *testing.T) {
	cluster := garagetest.Start(t, 3)
	cluster.CreateBucket(t, "bucket")
	fill(t, cluster, 40)
	whole := cluster.Nodes[0].Blocks(t)
	require.NotEmpty(t, whole)
	require.Eventually(t, func() bool { return len(cluster.Nodes[2].Blocks(t)) == len(whole) }, time.Minute, 100*time.Millisecond)

	cluster.Nodes[2].Wipe(t)
	cluster.Nodes[2].Start(t)
	require.Eventually(t, func() bool {
		health, err := cluster.Client().GetClusterHealth(t.Context())
		return err == nil && health.Healthy()
	}, time.Minute, 50*time.Millisecond)
	assert.Less(t, len(cluster.Nodes[2].Blocks(t)), len(whole), "healthy, and most blocks are missing")

	returned, opened := open(t, cluster, func() bool { return len(cluster.Nodes[2].Blocks(t)) >= len(whole) })
	t.Logf("every block was back %s after the replica, the gate opened %s later", returned.Round(time.Second), (opened - returned).Round(time.Second))
	for block := range whole {
		require.Contains(t, cluster.Nodes[2].Blocks(t), block, "the gate is open and a block is missing")
	}
}

// open looks at the gate until it opens and tells, both since the begin, when whole became true and when it opened.
func open(t *testing.T, cluster *garagetest.Cluster, whole func() bool) (time.Duration, time.Duration) {
	t.Helper()
	var (
		proof    layout.Proof
		returned time.Duration
		begin    = time.Now()
		nodes    = witnesses(cluster)
		message  string
	)
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	note := func() {
		if returned == 0 && whole() {
			returned = time.Since(begin)
		}
	}
	for time.Since(begin) < 4*time.Minute {
		note()
		evidence := layout.Evidence{
			Now: time.Now(), Delay: 2 * garagetest.RPCTimeout * time.Millisecond, Accounts: backend.Accounts(t.Context(), nodes),
		}
		gate := layout.Prove(proof, evidence)
		if gate.Examine {
			evidence.Accounts = backend.Examined(t.Context(), nodes, evidence.Accounts)
			gate = layout.Prove(gate.Proof, evidence)
		}
		if gate.Message != message {
			message = gate.Message
			t.Logf("%5.1f s: %s", time.Since(begin).Seconds(), message)
		}
		if gate.Open {
			note()
			require.NotZero(t, returned, "the gate opened before every block was back")
			return returned, time.Since(begin)
		}
		proof = gate.Proof
		if err := backend.Ask(t.Context(), nodes, gate.Request); err != nil {
			t.Log(err)
			proof = layout.Proof{}
		}
		<-ticker.C
	}
	require.FailNow(t, "the gate stays closed", message)
	return 0, 0
}

func witnesses(cluster *garagetest.Cluster) []backend.Node {
	nodes := make([]backend.Node, 0, len(cluster.Nodes))
	for i := range cluster.Nodes {
		nodes = append(nodes, backend.Node{Name: strconv.Itoa(i), Run: "the only one", Admin: cluster.ClientOf(i)})
	}
	return nodes
}

func fill(t *testing.T, cluster *garagetest.Cluster, objects int) {
	t.Helper()
	client := backend.S3(cluster.S3URL(), cluster.KeyID, cluster.KeySecret, http.DefaultClient)
	random := rand.NewChaCha8([32]byte{})
	body := make([]byte, 200_000)
	for i := range objects {
		_, err := random.Read(body)
		require.NoError(t, err)
		_, err = client.PutObject(context.WithoutCancel(t.Context()), &s3.PutObjectInput{
			Bucket: aws.String("bucket"), Key: aws.String(fmt.Sprintf("object-%d", i)), Body: bytes.NewReader(body),
		})
		require.NoError(t, err)
	}
}
