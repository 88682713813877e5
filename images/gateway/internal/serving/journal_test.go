package serving

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
)

func TestTheJournalTellsWhatWasWritten(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	client := r.s3(r.key(testBucket, access.ReadWrite), noRetry)
	put(t, client, "before", []byte("x"))
	status, answer := r.push(http.MethodPut, "/gateway/v1/journal", cluster.AdminToken, `{"id":"one"}`)
	require.Equal(t, http.StatusOK, status, answer)

	put(t, client, "a b", []byte("x"))
	get(t, client, "before")
	_, err := client.CopyObject(t.Context(), &s3.CopyObjectInput{
		Bucket: aws.String(testBucket), Key: aws.String("copy"), CopySource: aws.String(testBucket + "/before"),
	})
	require.NoError(t, err)
	_, err = client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(testBucket), Key: aws.String("before")})
	require.NoError(t, err)
	_, err = client.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: aws.String(testBucket), Delete: &types.Delete{
		Objects: []types.ObjectIdentifier{{Key: aws.String("many<1>")}, {Key: aws.String("copy")}},
	}})
	require.NoError(t, err)

	status, answer = r.push(http.MethodGet, "/gateway/v1/journal?id=one&after=0", cluster.AdminToken, "")
	require.Equal(t, http.StatusOK, status, answer)
	var page struct {
		Last    int64 `json:"last"`
		Entries []struct {
			Bucket string `json:"bucket"`
			Key    string `json:"key"`
		} `json:"entries"`
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &page))
	var keys []string
	for _, entry := range page.Entries {
		require.Equal(t, testBucket, entry.Bucket)
		keys = append(keys, entry.Key)
	}
	require.Equal(t, []string{"a b", "before", "many<1>", "copy"}, keys, "each at its newest place")
	require.EqualValues(t, 5, page.Last)

	status, _ = r.push(http.MethodGet, "/gateway/v1/journal?id=two&after=0", cluster.AdminToken, "")
	require.Equal(t, http.StatusNotFound, status)
	status, _ = r.push(http.MethodGet, "/gateway/v1/journal?id=one&after=0", "wrong", "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = r.push(http.MethodDelete, "/gateway/v1/journal", cluster.AdminToken, "")
	require.Equal(t, http.StatusOK, status)
	status, _ = r.push(http.MethodGet, "/gateway/v1/journal?id=one&after=0", cluster.AdminToken, "")
	require.Equal(t, http.StatusNotFound, status)
}
