package witness_test

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/tour/witness"
)

// TestABlockThatIsNotOnTheDiskIsMissed takes one block from the disk of one node, behind Garage's back.
func TestABlockThatIsNotOnTheDiskIsMissed(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	id := cluster.CreateBucket(t, "witness")
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String(cluster.S3URL()), Region: names.GarageRegion, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(cluster.KeyID, cluster.KeySecret, ""),
	})
	// The second version is the one that counts, and the small object has no block.
	for _, object := range []struct {
		key  string
		size int
		fill byte
	}{{"large", 3 << 20, 1}, {"large", 3<<20 + 1, 2}, {"small", 100, 3}} {
		_, err := client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: aws.String("witness"), Key: aws.String(object.key), Body: bytes.NewReader(bytes.Repeat([]byte{object.fill}, object.size)),
		})
		require.NoError(t, err)
	}
	admin := witness.Garage{URL: cluster.AdminURL(), Token: cluster.AdminToken, Client: http.DefaultClient}
	data := filepath.Join(cluster.Nodes[0].Dir, "data")
	look := func() []string {
		missing, err := witness.Missing(t.Context(), admin, id, []string{"large", "small"}, map[string]string{"node": data})
		require.NoError(t, err)
		return missing
	}
	require.Empty(t, look())

	require.NoError(t, filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && len(entry.Name()) >= 64 {
			return os.Remove(path)
		}
		return err
	}))
	require.NotEmpty(t, look())

	_, err := witness.Missing(t.Context(), admin, id, []string{"never written"}, nil)
	require.Error(t, err, "an unknown object proves nothing")
}
