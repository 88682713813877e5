package serving

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/lib/access"
	"github.com/deckhouse/system-s3/lib/garage"
	"github.com/deckhouse/system-s3/lib/garage/garagetest"
	"github.com/deckhouse/system-s3/lib/names"
)

const otherBucket = "d8-other-logs-abcdefghijkl"

// attempt is one thing a client tries.
type attempt func(context.Context, *s3.Client) error

func putting(bucket string) attempt {
	return func(ctx context.Context, c *s3.Client) error {
		_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("object"), Body: strings.NewReader("data")})
		return err
	}
}

func getting(bucket string) attempt {
	return func(ctx context.Context, c *s3.Client) error {
		_, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: aws.String("object")})
		return err
	}
}

func listing(bucket string) attempt {
	return func(ctx context.Context, c *s3.Client) error {
		_, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket})
		return err
	}
}

func deleting(bucket string) attempt {
	return func(ctx context.Context, c *s3.Client) error {
		_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: aws.String("object")})
		return err
	}
}

func creating(bucket string) attempt {
	return func(ctx context.Context, c *s3.Client) error {
		_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket})
		return err
	}
}

func listingBuckets(ctx context.Context, c *s3.Client) error {
	_, err := c.ListBuckets(ctx, &s3.ListBucketsInput{})
	return err
}

func conditionally(ctx context.Context, c *s3.Client) error {
	_, err := c.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(testBucket), Key: aws.String("object"), Body: strings.NewReader("data"), IfNoneMatch: aws.String("*"),
	})
	return err
}

func TestWhoMayNotMayNot(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	cluster.CreateBucket(t, otherBucket)
	r := newRig(t, cluster, nil)
	good, readOnly, writeOnly := r.key(testBucket, access.ReadWrite), r.key(testBucket, access.Read), r.key(testBucket, access.Write)
	require.NoError(t, putting(testBucket)(t.Context(), r.s3(good)))
	foreign := access.Ring{}.Rotate(time.Now(), randomBytes(t))
	forged, err := access.Issue(foreign.Keys[0], access.Grant{
		Bucket: testBucket, Permission: access.ReadWrite, Subject: "s", Expires: time.Now().Add(time.Hour),
	}, [8]byte{})
	require.NoError(t, err)

	with := func(change func(*access.Key)) access.Key { k := good; change(&k); return k }
	cases := map[string]struct {
		reason string
		key    access.Key
		try    attempt
		code   string
	}{
		"another bucket":                {"a key is for one bucket", good, getting(otherBucket), "AccessDenied"},
		"another bucket, writing":       {"a key is for one bucket", good, putting(otherBucket), "AccessDenied"},
		"another bucket, listing":       {"a key is for one bucket", good, listing(otherBucket), "AccessDenied"},
		"a bucket that is not there":    {"nothing is said about others' buckets, not even whether they exist", good, listing("d8-none-none-abcdefghijkl"), "AccessDenied"},
		"a write with a read key":       {"", readOnly, putting(testBucket), "AccessDenied"},
		"a delete with a read key":      {"", readOnly, deleting(testBucket), "AccessDenied"},
		"a read with a write key":       {"", writeOnly, getting(testBucket), "AccessDenied"},
		"a list with a write key":       {"", writeOnly, listing(testBucket), "AccessDenied"},
		"making a bucket":               {"only SystemBuckets make buckets", good, creating(otherBucket), "AccessDenied"},
		"a conditional write":           {"Garage would ignore the condition and write", good, conditionally, "NotImplemented"},
		"a foreign ring":                {"", forged, getting(testBucket), "InvalidAccessKeyId"},
		"a tampered key id":             {"", with(func(k *access.Key) { k.AccessKeyID = tamper(k.AccessKeyID) }), getting(testBucket), "InvalidAccessKeyId"},
		"a wrong secret":                {"", with(func(k *access.Key) { k.SecretAccessKey += "x" }), getting(testBucket), "SignatureDoesNotMatch"},
		"a tampered session token":      {"what is sent must be true", with(func(k *access.Key) { k.SessionToken = tamper(k.SessionToken) }), getting(testBucket), "InvalidToken"},
		"another key's session token":   {"", with(func(k *access.Key) { k.SessionToken = readOnly.SessionToken }), getting(testBucket), "InvalidToken"},
		"buckets without session token": {"the key alone does not name its bucket", with(func(k *access.Key) { k.SessionToken = "" }), listingBuckets, "AccessDenied"},
		"the internal key's id":         {"its secret is the plane's", with(func(k *access.Key) { k.AccessKeyID = access.InternalKeyID }), getting(testBucket), "SignatureDoesNotMatch"},
	}
	for name, c := range cases {
		for style, option := range map[string]func(*s3.Options){"virtual host": noRetry, "path": pathStyle} {
			t.Run(name+"/"+style, func(t *testing.T) {
				requireCode(t, c.try(t.Context(), r.s3(c.key, noRetry, option)), c.code)
			})
		}
	}
	t.Run("no session token at all", func(t *testing.T) {
		require.NoError(t, getting(testBucket)(t.Context(), r.s3(with(func(k *access.Key) { k.SessionToken = "" }))))
	})
	t.Run("no secret in the log", func(t *testing.T) {
		for _, entry := range r.logs.All() {
			line := entry.Message + fmt.Sprint(entry.ContextMap())
			for _, key := range []access.Key{good, readOnly, writeOnly} {
				require.NotContains(t, line, key.AccessKeyID)
				require.NotContains(t, line, key.SecretAccessKey)
				require.NotContains(t, line, key.SessionToken)
			}
		}
	})
}

// tamper changes the character in the middle.
func tamper(s string) string {
	changed := []byte(s)
	if middle := len(s) / 2; changed[middle] == 'A' {
		changed[middle] = 'B'
	} else {
		changed[middle] = 'A'
	}
	return string(changed)
}

func TestAKeyEndsAtItsSecond(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	client := r.s3(r.keyFor(testBucket, access.ReadWrite, 10*time.Minute), noRetry)
	require.NoError(t, putting(testBucket)(t.Context(), client))
	r.clock.Store(int64(10 * time.Minute))
	err := getting(testBucket)(t.Context(), client)
	requireCode(t, err, "ExpiredToken")
	var failure interface{ HTTPStatusCode() int }
	require.ErrorAs(t, err, &failure)
	require.Equal(t, http.StatusBadRequest, failure.HTTPStatusCode(), "SDKs refresh on this status and code")
}

func TestEveryErrorIsAnS3Error(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	r := newRig(t, cluster, nil)
	ask := func(method, path string) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), method, names.S3URL+path, http.NoBody)
		require.NoError(t, err)
		response, err := r.http().Do(request)
		require.NoError(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	anonymous := ask(http.MethodGet, "/"+testBucket+"/object")
	require.Equal(t, http.StatusForbidden, anonymous.StatusCode)
	require.Equal(t, "application/xml", anonymous.Header.Get("Content-Type"))
	var body struct {
		Code      string `xml:"Code"`
		Resource  string `xml:"Resource"`
		RequestID string `xml:"RequestId"`
	}
	data, err := io.ReadAll(anonymous.Body)
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(data, &body))
	require.Equal(t, "AccessDenied", body.Code)
	require.Equal(t, "/"+testBucket+"/object", body.Resource)
	require.Equal(t, anonymous.Header.Get("X-Amz-Request-Id"), body.RequestID)
	require.NotEmpty(t, body.RequestID)
	require.Len(t, r.logs.FilterField(zapString("requestID", body.RequestID)).All(), 1, "the log line has the same id")

	head := ask(http.MethodHead, "/"+testBucket+"/object")
	require.Equal(t, http.StatusForbidden, head.StatusCode)
	data, err = io.ReadAll(head.Body)
	require.NoError(t, err)
	require.Empty(t, data)
	require.NotEmpty(t, head.Header.Get("X-Amz-Request-Id"))
}

func TestAQuotaErrorNamesTheLimit(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	id := cluster.CreateBucket(t, testBucket)
	size, objects := int64(1<<20), int64(2)
	_, err := cluster.Client().SetBucketQuotas(t.Context(), id, garage.Quotas{MaxSize: &size, MaxObjects: &objects})
	require.NoError(t, err)
	r := newRig(t, cluster, nil)
	client := r.s3(r.key(testBucket, access.ReadWrite), noRetry)
	upload := func(key string, size int) error {
		_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(testBucket), Key: &key, Body: bytes.NewReader(pattern(size))})
		return err
	}
	failure := requireCode(t, upload("big", 2<<20), "QuotaExceeded")
	require.Contains(t, failure.ErrorMessage(), "1048576")
	require.NoError(t, upload("a", 1))
	require.NoError(t, upload("b", 1))
	require.NoError(t, upload("b", 2))
	failure = requireCode(t, upload("c", 1), "QuotaExceeded")
	require.Contains(t, failure.ErrorMessage(), "Object quota")
}

func TestTheInternalKeyMayEverythingInEveryBucket(t *testing.T) {
	cluster := garagetest.Start(t, 1)
	cluster.CreateBucket(t, testBucket)
	cluster.CreateBucket(t, otherBucket)
	r := newRig(t, cluster, nil)
	client := r.s3(access.Key{AccessKeyID: cluster.KeyID, SecretAccessKey: cluster.KeySecret}, pathStyle)
	for _, bucket := range []string{testBucket, otherBucket} {
		for _, try := range []attempt{putting(bucket), getting(bucket), listing(bucket), deleting(bucket)} {
			require.NoError(t, try(t.Context(), client))
		}
	}
}
