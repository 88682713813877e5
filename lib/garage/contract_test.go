package garage_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/layout"
	"github.com/deckhouse/system-s3/lib/names"
)

func s3Of(c *garagetest.Cluster) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(c.S3URL()), Region: names.GarageRegion, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(c.KeyID, c.KeySecret, ""),
	})
}

func TestBucketContract(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	client, ctx := cluster.Client(), t.Context()
	const name = "d8-test-bucket-abcdef"

	made, err := client.CreateBucket(ctx)
	require.NoError(t, err)
	require.Len(t, made.ID, 64)
	assert.Empty(t, made.GlobalAliases, "a bucket is created without a name")

	for range 2 {
		named, err := client.AddBucketAlias(ctx, made.ID, name)
		require.NoError(t, err, "naming is idempotent")
		assert.True(t, named.HasAlias(name))
	}
	other, err := client.CreateBucket(ctx)
	require.NoError(t, err)
	_, err = client.AddBucketAlias(ctx, other.ID, name)
	require.Error(t, err, "a name belongs to one bucket")

	quotas := garage.Quotas{MaxSize: aws.Int64(1 << 20)}
	limited, err := client.SetBucketQuotas(ctx, made.ID, quotas)
	require.NoError(t, err)
	assert.True(t, limited.Quotas.Equal(quotas), "nil is no limit, got %+v", limited.Quotas)

	granted, err := client.AllowBucketKey(ctx, made.ID, cluster.KeyID, garage.Permissions{Read: true, Write: true})
	require.NoError(t, err)
	assert.Equal(t, garage.Permissions{Read: true, Write: true}, granted.Granted(cluster.KeyID))

	objects := s3Of(cluster)
	_, err = objects.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(name), Key: aws.String("a/b"), Body: strings.NewReader(strings.Repeat("x", 5000)),
	})
	require.NoError(t, err)
	upload, err := objects.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: aws.String(name), Key: aws.String("c")})
	require.NoError(t, err)
	require.NotEmpty(t, upload.UploadId)

	require.EventuallyWithT(t, func(t *assert.CollectT) {
		seen, err := client.GetBucketByAlias(ctx, name)
		require.NoError(t, err)
		assert.Equal(t, made.ID, seen.ID)
		assert.EqualValues(t, 1, seen.Objects)
		assert.EqualValues(t, 5000, seen.Bytes)
		assert.EqualValues(t, 1, seen.UnfinishedMultipartUploads)
	}, 10*time.Second, 100*time.Millisecond, "counters follow the objects")

	err = client.DeleteBucket(ctx, made.ID)
	assert.True(t, garage.IsConflict(err), "a bucket with objects is kept, got %v", err)
	cleaned, err := client.CleanupIncompleteUploads(ctx, made.ID, 0)
	require.NoError(t, err)
	assert.Equal(t, 1, cleaned)
	_, err = objects.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(name), Key: aws.String("a/b")})
	require.NoError(t, err)
	require.NoError(t, client.DeleteBucket(ctx, made.ID))

	for what, err := range map[string]error{
		"by id":        errorOf(client.GetBucketByID(ctx, made.ID)),
		"by alias":     errorOf(client.GetBucketByAlias(ctx, name)),
		"delete again": client.DeleteBucket(ctx, made.ID),
	} {
		assert.True(t, garage.IsAbsent(err), "%s: %v", what, err)
	}
}

func errorOf(_ garage.Bucket, err error) error { return err }

func TestDenyAndUnnameContract(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	client, ctx := cluster.Client(), t.Context()
	id := cluster.CreateBucket(t, "first-name")
	_, err := client.RemoveBucketAlias(ctx, id, "first-name")
	require.Error(t, err, "the last name stays")
	_, err = client.AddBucketAlias(ctx, id, "second-name")
	require.NoError(t, err)
	renamed, err := client.RemoveBucketAlias(ctx, id, "first-name")
	require.NoError(t, err)
	assert.Equal(t, []string{"second-name"}, renamed.GlobalAliases)
	denied, err := client.DenyBucketKey(ctx, id, cluster.KeyID, garage.Permissions{Write: true})
	require.NoError(t, err)
	assert.Equal(t, garage.Permissions{Read: true}, denied.Granted(cluster.KeyID))
}

func TestListContract(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	client, ctx := cluster.Client(), t.Context()
	const total, page = 7, 3
	for i := range total {
		cluster.CreateBucket(t, fmt.Sprintf("bucket-%d", i))
	}
	seen, from := map[string]bool{}, ""
	for {
		buckets, err := client.ListBucketsInfo(ctx, from, page)
		require.NoError(t, err)
		before := len(seen)
		for _, bucket := range buckets {
			seen[bucket.ID] = true
			assert.Equal(t, garage.Permissions{Read: true, Write: true}, bucket.Granted(cluster.KeyID))
			from = bucket.ID
		}
		if len(buckets) < page || len(seen) == before {
			break
		}
	}
	assert.Len(t, seen, total, "pages begin with the last bucket of the page before")
}

func TestKeyContract(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	client, ctx := cluster.Client(), t.Context()
	info, err := client.GetKeyInfo(ctx, cluster.KeyID)
	require.NoError(t, err)
	assert.Equal(t, cluster.KeyID, info.AccessKeyID)
	_, err = client.GetKeyInfo(ctx, "another-key-id")
	assert.True(t, garage.IsAbsent(err), "%v", err)
	err = client.ImportKey(ctx, garage.Key{AccessKeyID: cluster.KeyID, SecretAccessKey: strings.Repeat("0", 64), Name: "x"})
	assert.True(t, garage.IsConflict(err), "%v", err)
}

func TestForeignTokenContract(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	_, err := garage.New(cluster.AdminURL(), "wrong", http.DefaultClient).GetBucketByAlias(t.Context(), "x")
	var refused *garage.Error
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, http.StatusForbidden, refused.Status)
	assert.False(t, garage.IsAbsent(err))
}

func TestLayoutContract(t *testing.T) {
	t.Parallel()
	cluster := garagetest.StartWith(t, 3, garagetest.Options{Bare: true})
	client, ctx := cluster.Client(), t.Context()

	health, err := client.GetClusterHealth(ctx)
	require.NoError(t, err)
	assert.False(t, health.Available(), "there is no layout, got %+v", health)
	fresh, err := client.GetClusterLayout(ctx)
	require.NoError(t, err)
	assert.Equal(t, layout.Layout{}, fresh)

	changes := func(n int) (changes []layout.Change) {
		for _, node := range cluster.Nodes[:n] {
			changes = append(changes, layout.Change{Role: layout.Role{ID: node.ID, Zone: "z-" + node.ID[:4], Capacity: layout.Capacity}})
		}
		return changes
	}
	require.NoError(t, client.UpdateClusterLayout(ctx, changes(2)))
	var impossible *garage.LayoutError
	require.ErrorAs(t, client.PreviewClusterLayoutChanges(ctx), &impossible, "two nodes cannot keep three copies")
	require.NoError(t, client.RevertClusterLayout(ctx))
	reverted, err := client.GetClusterLayout(ctx)
	require.NoError(t, err)
	assert.Empty(t, reverted.Staged)

	require.NoError(t, client.UpdateClusterLayout(ctx, changes(3)))
	staged, err := client.GetClusterLayout(ctx)
	require.NoError(t, err)
	assert.ElementsMatch(t, changes(3), staged.Staged)
	require.NoError(t, client.PreviewClusterLayoutChanges(ctx))
	var refused *garage.Error
	require.True(t, errors.As(client.ApplyClusterLayout(ctx, 7), &refused), "a wrong version is refused")
	require.NoError(t, client.ApplyClusterLayout(ctx, 1))

	require.EventuallyWithT(t, func(t *assert.CollectT) {
		health, err := client.GetClusterHealth(ctx)
		require.NoError(t, err)
		assert.True(t, health.Healthy(), "%+v", health)
		history, err := client.GetClusterLayoutHistory(ctx)
		require.NoError(t, err)
		assert.Equal(t, 1, history.CurrentVersion)
		assert.False(t, history.Draining())
	}, 30*time.Second, 200*time.Millisecond)
	status, err := client.GetClusterStatus(ctx)
	require.NoError(t, err)
	assert.Len(t, status.Up(), 3)
	self, err := cluster.ClientOf(1).GetSelf(ctx)
	require.NoError(t, err)
	assert.Equal(t, cluster.Nodes[1].ID, self)
	assert.Equal(t, 1, status.LayoutVersion)
}

func TestStagedRemovalContract(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	client, ctx := cluster.Client(), t.Context()
	id := cluster.Nodes[0].ID
	require.NoError(t, client.UpdateClusterLayout(ctx, []layout.Change{{Role: layout.Role{ID: id}, Remove: true}}))
	staged, err := client.GetClusterLayout(ctx)
	require.NoError(t, err)
	require.Len(t, staged.Staged, 1)
	assert.True(t, staged.Staged[0].Remove)
	assert.Equal(t, id, staged.Staged[0].ID)
}

func TestConnectContract(t *testing.T) {
	t.Parallel()
	cluster := garagetest.Start(t, 1)
	other := garagetest.StartWith(t, 1, garagetest.Options{Bare: true})
	failures, err := cluster.Client().ConnectClusterNodes(t.Context(), []string{
		cluster.Nodes[0].RPCAddress, other.Nodes[0].RPCAddress,
	})
	require.NoError(t, err)
	require.Len(t, failures, 2)
	require.NoError(t, failures[0], "a node is connected to itself")
	require.Error(t, failures[1], "a node with another RPC secret is a stranger")
}
