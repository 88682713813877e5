package backend_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/images/controller/internal/backend"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/layout"
)

// TestAnUploadThatWasKilledKeepsNoGateShut: all nodes are killed in the middle of an upload, and its blocks are nowhere,
// as after a power cut. Garage tries to copy them for ever; nobody was promised them.
func TestAnUploadThatWasKilledKeepsNoGateShut(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 3)
	cluster.CreateBucket(t, "bucket")
	begun := interrupted(t, cluster)
	restartWithout(t, cluster, begun)
	_, opened := open(t, cluster, func() bool { return lacks(t, cluster) == len(begun) })
	t.Logf("the gate opened after %s with %d blocks that are nowhere", opened.Round(time.Second), len(begun))
}

// TestAFinishedObjectKeepsTheGateShut: the same blocks, of an object that was acknowledged.
func TestAFinishedObjectKeepsTheGateShut(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 3)
	cluster.CreateBucket(t, "bucket")
	fill(t, cluster, 1)
	finished := cluster.Nodes[0].Blocks(t)
	require.NotEmpty(t, finished)
	restartWithout(t, cluster, finished)
	nodes := witnesses(cluster)
	require.Eventually(t, func() bool {
		for _, node := range nodes {
			_ = node.Admin.Ask(t.Context(), layout.FindBlocks) // asked again at the next look
		}
		return lacks(t, cluster) == len(finished)
	}, 2*time.Minute, time.Second)
	for _, account := range backend.Examined(t.Context(), nodes, backend.Accounts(t.Context(), nodes)) {
		assert.Empty(t, account.Silence)
		assert.Equal(t, len(finished), account.LackedBlocks, "%s: it was acknowledged", account.Name)
	}
}

// interrupted kills all nodes in the middle of an upload and returns the blocks that had been written.
func interrupted(t *testing.T, cluster *garagetest.Cluster) map[string]bool {
	t.Helper()
	client := backend.S3(cluster.S3URL(), cluster.KeyID, cluster.KeySecret, http.DefaultClient)
	const all, sent = 8 << 20, 3 << 20
	body := make([]byte, all) // no two blocks of it are equal
	_, err := rand.NewChaCha8([32]byte{}).Read(body)
	require.NoError(t, err)
	stalls := &stalling{Reader: bytes.NewReader(body), after: sent, killed: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		_, err := client.PutObject(context.WithoutCancel(t.Context()), &s3.PutObjectInput{
			Bucket: aws.String("bucket"), Key: aws.String("interrupted"), Body: stalls,
		}, s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware), func(o *s3.Options) {
			o.RequestChecksumCalculation, o.Retryer = aws.RequestChecksumCalculationWhenRequired, aws.NopRetryer{}
		})
		ended <- err
	}()
	var begun map[string]bool
	require.Eventually(t, func() bool {
		begun = cluster.Nodes[2].Blocks(t)
		return len(begun) > 1 || len(ended) > 0
	}, time.Minute, 50*time.Millisecond)
	require.Empty(t, ended, "the upload has ended before it was interrupted")
	for _, node := range cluster.Nodes {
		node.Kill()
	}
	close(stalls.killed)
	require.Error(t, <-ended)
	for _, node := range cluster.Nodes {
		for block := range node.Blocks(t) {
			begun[block] = true
		}
	}
	return begun
}

// stalling is a body of which no more comes after so many bytes, until it breaks off.
type stalling struct {
	*bytes.Reader

	after  int64
	killed chan struct{}
}

// Read stalls.
func (s *stalling) Read(p []byte) (int, error) {
	read := s.Size() - int64(s.Len())
	if read >= s.after {
		<-s.killed
		return 0, io.ErrUnexpectedEOF
	}
	return s.Reader.Read(p[:min(int64(len(p)), s.after-read)])
}

// WriteTo is hidden: it would not stall.
func (s *stalling) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{s})
}

// restartWithout starts all nodes without the blocks on their disks.
func restartWithout(t *testing.T, cluster *garagetest.Cluster, blocks map[string]bool) {
	t.Helper()
	for _, node := range cluster.Nodes {
		node.Kill()
		node.DropBlocks(t, blocks)
		node.Start(t)
	}
	require.Eventually(t, func() bool {
		health, err := cluster.Client().GetClusterHealth(t.Context())
		return err == nil && health.Healthy()
	}, time.Minute, 50*time.Millisecond)
}

// lacks is how many blocks each node knows to lack; -1 while they do not say the same.
func lacks(t *testing.T, cluster *garagetest.Cluster) int {
	t.Helper()
	first := -1
	for i := range cluster.Nodes {
		count, err := cluster.ClientOf(i).CountLackedBlocks(t.Context())
		if err != nil || first >= 0 && count != first {
			return -1
		}
		first = count
	}
	return first
}
