package serving

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
)

// A replica that was away while a bucket was made does not know it when it returns. No client may hear that there is no
// such bucket, nor that an object is not there.
func TestAReplicaThatWasAway(t *testing.T) {
	cluster := garagetest.Start(t, 3)
	r := newRig(t, cluster, nil)
	cluster.Nodes[0].Kill()
	admin := cluster.ClientOf(1)
	var bucket garage.Bucket
	eventually(t, "two of three take a bucket", func() bool {
		made, err := admin.CreateBucket(t.Context())
		bucket = made
		return err == nil
	})
	_, err := admin.AddBucketAlias(t.Context(), bucket.ID, testBucket)
	require.NoError(t, err)
	_, err = admin.AllowBucketKey(t.Context(), bucket.ID, cluster.KeyID, garage.Permissions{Read: true, Write: true})
	require.NoError(t, err)
	cluster.Nodes[0].Start(t)

	client := r.s3(r.key(testBucket, access.ReadWrite), func(o *s3.Options) { o.Retryer = aws.NopRetryer{} })
	lagged := 0
	served := func(err error) bool {
		if err == nil {
			return true
		}
		var refused smithy.APIError
		require.ErrorAs(t, err, &refused)
		require.NotContains(t, []string{"NoSuchBucket", "NoSuchKey", "NotFound", "AccessDenied"}, refused.ErrorCode(), refused.ErrorMessage())
		lagged++
		return false
	}
	eventually(t, "the replica serves the bucket", func() bool { return served(putting(testBucket)(t.Context(), client)) })
	_, err = client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String(testBucket), Key: aws.String("absent")})
	var refused smithy.APIError
	require.True(t, errors.As(err, &refused))
	require.Equal(t, "NotFound", refused.ErrorCode())
	t.Logf("%d requests were put off", lagged)
}
